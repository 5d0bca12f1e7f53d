// Package record is what the BPF programs and Go share: the one Go twin of
// internal/bpf/src/record.h. It has the identity of processes and files, label sources and
// their ABIs, outcomes, states of threads, events, unwind rules, and the limits.
//
// A struct of the header has its layout here, field by field, paddings included: package bpf
// hands it to the kernel's maps and takes it from the ring buffers as it is, without a copy
// in another form. A test of package bpf compares each field with the objects' BTF, and each
// value of an enum with the generated one.
//
// The package has types and their names, no code that reads or decides, and imports nothing
// of ours.
package record
