// Package customlabelsreceiver is the custom_labels receiver of the
// OpenTelemetry Collector: it samples CPU on the whole host with eBPF and emits
// profiles whose samples carry the labels that the interrupted thread had
// published about itself, and CPU time by process and label as metrics.
//
// This package is the component's shell: [Config], the factory, start and
// shutdown, status and telemetry. What runs between Start and Shutdown is
// internal/pipeline, driven by the options that a Config translates to; it is an
// interface here, so that the lifecycle can be tested without privileges.
//
// It is the only package that knows components of the collector. Apart from it
// internal/pipeline knows consumers, internal/profile the data model, and
// internal/cputime that of metrics.
//
// Invariants:
//   - After Start has returned nothing stops the collector: what goes wrong is
//     counted and reported as component status.
//   - Shutdown may be called at any time, any number of times. It flushes, and
//     returns only when nothing of the receiver is left running, but for what does
//     not answer: a file, a process, a next consumer that ignores its context.
//   - There is no package state: several receivers can run in one process.
//
// # Signals
//
// Signals of one configuration share one sampler. The collector makes a receiver for each
// signal; the factory knows them by their [Config]. The pipeline runs from the last Start
// to the first Shutdown: only then are the consumers of all signals there, whatever order
// the collector starts and stops them in. A collector that ends one of them alone (feature gate
// service.partialReload) ends both: the other one says so a minute later, in log and status.
//
// # Telemetry
//
// Metrics about the receiver are asynchronous. The path of a sample adds to plain counters,
// the BPF counters are in kernel memory, and one callback observes all instruments from one
// snapshot, so that hits = emitted + filtered + dropped + pending at each collection.
package customlabelsreceiver

//go:generate mdatagen metadata.yaml
//go:generate go run ./internal/configtable metadata.yaml README.md
