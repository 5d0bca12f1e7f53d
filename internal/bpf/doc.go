// Package bpf samples the CPUs of the host with eBPF programs of its own and
// hands out what they record.
//
// A [Sampler] loads the programs, attaches one perf event to each online CPU,
// and gives two streams: samples ([Sampler.Read]) and the life of processes
// ([Sampler.ReadEvent], [Sampler.Scan], [Sampler.ReadMappingEvents]). In the
// other direction it is told where a process publishes its labels
// ([Sampler.SetLabelSources]).
//
// The package knows no ELF, no symbols and no meaning of labels: a [Record]
// carries raw bytes with explicit lengths. Layouts, limits and enums that C
// and Go share are in src/record.h; their Go twins are generated.
//
// Invariants:
//   - hits = submitted + filtered + dropped, exactly, once [Sampler.Stop] has
//     returned (see [Counters]).
//   - A record is self-contained: nothing in it refers to another record.
//   - A process is a [ProcessID]: a reused PID and an exec are other processes,
//     so what is known of one is never applied to another.
//   - A process that has no label sources costs no read of its memory for labels.
package bpf
