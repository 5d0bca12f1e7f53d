// Package executable keeps what is known of the files that processes map executable: their
// facts, which are read once unless the file could not be read, their unwind rows, and descriptors to read them again.
//
// A file is known by what its owner cannot set (procfs.FileID), so that several mounts
// of a file are one file where the kernel says so (Options.NameFile); files share a table of rows when
// all that it says is equal. What a file says is hostile: reading it is bounded, and what cannot
// be read is an error of that file alone.
//
// Rows are built for what is sampled, by one worker that takes a quarter of a CPU, the file
// first that most sampled processes wait for. They stay a minute after the last process: a
// program that is run again and again need not wait for them each time. When
// what unwind rows may take is used by running processes, further files are refused rather than
// others evicted: a stack that was whole stays so.
//
// What a C library says of its layout is kept by file, read from the file: a process that
// changes its own copy in memory misleads only itself.
package executable
