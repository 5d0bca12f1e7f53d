// Package process keeps the table of processes: who they are, what they have
// mapped, and where they publish labels.
//
// A Table is fed with events ([Table.HandleEvents]) and asked on each sample
// ([Table.Lookup]); neither waits for I/O. Workers ([Table.Run]) read /proc and
// the memory of processes, and tell a [Publisher] what the sampling programs
// need to know. What became known of a process is an immutable snapshot
// ([Process.Info]); what became known of a file is shared by all that map it
// (package executable).
//
// A look at a process has three parts. It is read (reader.look), which tells nobody; what comes
// of that is decided (decide), which reads nothing; and that is applied (Table.apply). Between
// the last two it is made sure that the process is still the same. [Inspect] is the first part
// alone. What the sampling programs were told of a process is its publication; where its job
// is, its jobState; how much was read of it, its extent.
//
// Invariants:
//   - A process is a [record.ProcessID], (PID, start time, exec generation): a reused PID or an
//     exec is another process. What was read of one image is never shown for another; when that cannot be ruled
//     out, it is discarded.
//   - A process that has exited stays until samples of two seconds later, or of two sample periods, have been read, so that
//     those that are still to be read find it, at most until the second [Table.EndInterval] after that; one that was never
//     sampled, until samples of 100 ms later, or of two sample periods, have been read, or two seconds have passed; that is
//     looked at when another process enters, and at the end of an interval. What is
//     known of it stays for as long as samples hold it ([Table.Hold]), without a place in the
//     table. One that has begun and ended in events that are handled together, and was not
//     sampled, never enters. When there is no room, what loses the least makes some, and no
//     user keeps more than half from others.
//   - Work is bounded for each process and in all: mappings, files, descriptors,
//     retries, and the share of time spent on one process. A process that makes
//     a worker hang costs that worker, which is replaced a bounded number of times.
//   - Events may be lost or come late. They make things fast; a periodic pass over
//     all processes makes them right.
//
// The package knows no BPF, no profiles and no symbols.
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
// cost two notes in a table. So is one of a Go program whose labels were found before: it begins with
// all that its labels take (record.LookWhenSampled). The sampling programs are told of such programs, and
// tell the first sample of each process at once (EventSampled): it mostly still runs then, and
// only a look while it runs names its functions. Other events of them can wait. So can exits,
// and forks of processes without label sources; the child of one that has some inherits what
// its parent has published by then.
//
// A forked child keeps the label sources that it has inherited until its own are settled. A
// place that the dynamic loader has filled in is believed when it has been seen twice; a
// child's threads publish before that. Where its parent's were presumed, its own look confirms or
// refutes them: its parent may end before it is looked at. That says nothing of their program.
//
// What is found of a process counts as certain for others of its program only if it follows from the
// very file that the kernel told of at its exec: a process can change what /proc/PID/exe shows.
//
// Names of a thread context's attributes hold from their publication on. A record that a
// forked child has inherited refers to its parent's names; a sample from before the child's
// own context never gets the child's. An index whose name has changed has none, whether or not a
// look came in between that found no context.
//
// A process that is not selected is not looked into. If no label could change the verdict,
// neither its mappings nor its executables nor its memory are read.
package process
