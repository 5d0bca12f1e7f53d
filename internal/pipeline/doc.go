// Package pipeline is the engine of the receiver: it samples, and hands profiles and metrics
// to the next consumers. [New] loads it as [Options] say, Start begins, Shutdown hands over
// what is left, and Snapshot tells at any time what became of every sample:
//
//	o := pipeline.Defaults()
//	o.Next.Profiles = sink
//	p, err := pipeline.New(o)
//	...
//	err = p.Start(ctx)
//	...
//	err = p.Shutdown(ctx)
//
// It wires the other internal packages together: the sampler of bpf, the process table, the
// decoder of labels, the builders of profiles and of metrics, the names of functions. What is
// its own are the ways between them: reading without ever waiting, samples that wait for what
// explains them, batches by user, requests that receivers take, and counting.
//
// It knows the collector's data model, its consumers, and what they learn from a context, and
// nothing of components, their configuration or their telemetry: those are the receiver's.
// Yet errors, log lines and the names of limits use the keys of the configuration, so that
// whoever reads them can look them up.
//
// It runs on Linux on amd64 and arm64; elsewhere New returns an error, and options and
// snapshots are there, so that what uses them can be built.
//
// Invariants:
//   - After Start has returned nothing stops the pipeline but Shutdown: what goes wrong is
//     counted and reported.
//   - Reading samples never waits for the next consumer. Every hit is emitted, filtered,
//     dropped with a reason, or pending.
//   - Shutdown returns only when nothing of the pipeline is left running, but for what does not
//     answer: a file or a process that hangs, a next consumer that ignores that its context has ended.
//   - There is no package state: several pipelines can run in one process.
//
// # Decisions
//
// A sample waits for the names of its attributes. A program may publish a name and use it
// in the same microsecond. A sample that refers to a name that is not known is set aside,
// its process's context is looked at, and only then is it decoded; at most 1 MiB of
// samples for at most a second. So the first sample after an update already has it.
//
// A sample without a verdict waits in its batch. The verdict mostly comes within
// milliseconds; when the batch is built, processes that are not wanted are left out before
// anything of them is in its dictionary. Those that could not be judged are left out and
// counted (unknown_process): they may be excluded ones.
//
// A batch has the samples of each user apart, in a builder of their own. In a common batch they
// share one dictionary; with batch_per_user each has its own, so that nothing has to be
// taken out of it. Entries are bounded by user, and what grows too large hands over alone:
// a user cannot change another's batches, not even their boundaries. Batches that come
// before their time take half of the room of those that wait.
//
// What the kernel knows of a process overrides what it says of itself: PID, executable,
// user and container.
package pipeline
