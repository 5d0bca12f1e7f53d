// Package procfs reads what Linux says about a process: /proc/PID files, mapped
// files and remote memory, typed and bounded.
//
// Everything read here is controlled by the process it describes: names, paths,
// command lines and the number of mappings. Each reader therefore has a named
// bound, and a file is opened only after it is known to be a regular one, so
// that a FIFO or a device put in its place can neither block nor be disturbed.
//
// It does not cache and knows nothing of identity: a PID may be reused between
// two calls. Package process compares start times for that. Calls may block for
// as long as a filesystem or a page fault of the target does, so they belong in
// a worker, never on the path of a sample.
package procfs
