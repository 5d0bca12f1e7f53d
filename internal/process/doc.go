// Package process keeps the table of processes: who they are, what they have
// mapped, and where they publish labels.
//
// A Table is fed with events ([Table.HandleEvent]) and asked on each sample
// ([Table.Lookup]); neither waits for I/O. Workers ([Table.Run]) read /proc and
// the memory of processes, and tell a [Publisher] what the sampling programs
// need to know. What became known of a process is an immutable snapshot
// ([Process.Info]); what became known of a file is shared by all that map it.
//
// Invariants:
//   - A process is a [record.ProcessID], (PID, start time, exec generation): a reused PID or an
//     exec is another process. What was read of one image is never shown for another; when that cannot be ruled
//     out, it is discarded.
//   - A process that has exited stays for one whole interval ([Table.EndInterval]),
//     so that samples still on their way find it.
//   - Work is bounded for each process and in all: mappings, files, descriptors,
//     retries, and the share of time spent on one process. A process that makes
//     a worker hang costs that worker, which is replaced a bounded number of times.
//   - Events may be lost or come late. They make things fast; a periodic pass over
//     all processes makes them right.
//
// The package knows no BPF, no profiles and no symbols.
//
// # Files
//
// Files are shared by what they are to the kernel, so that mounts of one image are one
// file; copies share rows when a hash of all their bytes is equal.
//
// Rows are built for what is sampled, by one worker that takes a quarter of a CPU, the file
// first that most sampled processes wait for. They stay a minute after the last process: a
// program that is run again and again need not wait for them each time. When
// what unwind rows may take is used by running processes, further files are refused rather than
// others evicted: a stack that was whole stays so.
//
// What the dynamic loader knows is read anew at each look at a process, and only for places
// in the DTV and libraries without relocations. It costs a few reads of some bytes; kept
// between looks, it would be pointers into memory that the process has freed since. What a
// C library says of its layout is kept by file, read from the file: a process that changes
// its own copy in memory misleads only itself.
//
// # Looks
//
// A busy machine does not make its processes look expensive. What is spent on one process
// is bounded to a share of a worker's time, so that no process can take it from others. CPU
// time counts in full, waiting less: on a machine with five times as much to do as CPUs, a
// look takes five times as long, and the next one would be due too late for the label that
// it is for.
//
// A process of a program of which three in a row had no label sources is read when it is
// sampled, or when it lives: many that are started again and again have ended by then, and
// cost two notes in a table. Events are read, and workers woken, for a few of them together.
//
// A forked child keeps the label sources that it has inherited until its own are settled. A
// place that the dynamic loader has filled in is believed when it has been seen twice; a
// child's threads publish before that.
//
// Names of a thread context's attributes hold from their publication on. A record that a
// forked child has inherited refers to its parent's names; a sample from before the child's
// own context never gets the child's.
//
// A process that is not selected is not looked into. If no label could change the verdict,
// neither its mappings nor its executables nor its memory are read.
package process
