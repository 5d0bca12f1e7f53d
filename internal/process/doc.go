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
//   - A process is an [ID]: a reused PID or an exec is another process. What was
//     read of one image is never shown for another; when that cannot be ruled
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
package process
