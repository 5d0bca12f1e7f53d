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
//   - Shutdown returns only when nothing of the pipeline is left running.
//   - There is no package state: several pipelines can run in one process.
package pipeline
