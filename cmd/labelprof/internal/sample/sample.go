// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// Keys of attributes.
const (
	// LabelPrefix stands before the keys of labels whose semantic convention is open.
	LabelPrefix = "process.context.label."

	KeyTraceID     = "trace_id"
	KeySpanID      = "span_id"
	KeyPID         = "process.pid"
	KeyProcessName = "process.executable.name"
)

// OfKernel reports whether a key is that of a resource attribute that no label may pass for: the
// kernel says them.
func OfKernel(key string) bool {
	switch key {
	case KeyPID, KeyProcessName, "process.executable.path", "process.command_args", "process.real_user.id", "container.id", "k8s.pod.uid":
		return true
	}
	return false
}

// Sample is one sample of an on-CPU or off-CPU profile with everything looked up. It and what
// it points at are valid during the call that hands it over.
type Sample struct {
	Kind       Kind
	Hits       int64
	Ns         int64 // on the CPU, or off it if that is the kind
	PeriodNs   int64 // 0 off the CPU
	Points     []Point
	Process    *Process
	Stack      []*Location // leaf first
	Attributes []Attribute
	TraceID    string // lower-case hex; "" if there is none
	SpanID     string
}

// Process is what a resource says about the process of its samples.
type Process struct {
	PID        int64 // 0: not said
	Name       string
	Attributes []Attribute
}

// Attribute is a key with a value: any bytes. Numbers keep their number.
type Attribute struct {
	Key      string
	Text     string
	Number   int64
	IsNumber bool
}

type (
	// Location is an address with its functions, as the store of samples has it.
	Location = samplestore.Location
	// Mapping is a file, or what stands for one, in the memory of a process.
	Mapping = samplestore.Mapping
	// Line is a place in a function.
	Line = samplestore.Line
	// Function is a function of some source file.
	Function = samplestore.Function
	// Point is when a sample was taken and what it counts.
	Point = samplestore.Point
	// Kind is what the time of a sample was spent on.
	Kind = samplestore.Kind
)

// The kinds that there are.
const (
	OnCPU  = samplestore.OnCPU
	OffCPU = samplestore.OffCPU
)

// FrameName is what a location is called in a table: its innermost function.
func FrameName(l *Location) string {
	if Named(l) {
		return l.Lines[0].Function.Name
	}
	return "0x" + strconv.FormatUint(l.Address, 16)
}

// Top is where a sample's time goes: the innermost function, and off the CPU, where that
// is always the kernel's scheduler, the innermost one of the program itself. nil: there is none.
func (s *Sample) Top() *Location {
	if s.OffCPU() {
		for _, l := range s.Stack {
			if !inKernel(l) {
				return l
			}
		}
	}
	if len(s.Stack) == 0 {
		return nil
	}
	return s.Stack[0]
}

// inKernel reports whether a location is of the kernel, its modules or BPF programs. In pprof
// only the mapping tells: the kernel names a few of a process in brackets, too.
func inKernel(l *Location) bool {
	if l.Type != "" {
		return l.Type == "kernel"
	}
	name, ok := strings.CutPrefix(l.Mapping.File, "[")
	if !ok {
		return false
	}
	name, _, _ = strings.Cut(strings.TrimSuffix(name, "]"), ":") // [anon:NAME], [stack:TID]
	switch name {
	case "vdso", "vsyscall", "uprobes", "heap", "stack", "anon", "anon_shmem":
		return false
	}
	return true
}

// OffCPU reports whether its time is off the CPU.
func (s *Sample) OffCPU() bool { return s.Kind == OffCPU }

// Named reports whether the innermost function is known.
func Named(l *Location) bool {
	return len(l.Lines) > 0 && l.Lines[0].Function.Name != ""
}

// Lookup finds the value of a label key: as a sample attribute under this name, with
// the prefix for labels, or as an attribute of the resource. What the kernel says of the
// process, and the link, go before all labels.
func (s *Sample) Lookup(key string) (string, bool) {
	switch {
	case OfKernel(key):
		if text, ok := s.Process.Lookup(key); ok {
			return text, true
		}
	case key == KeyTraceID && s.TraceID != "":
		return s.TraceID, true
	case key == KeySpanID && s.SpanID != "":
		return s.SpanID, true
	}
	for _, name := range []string{key, LabelPrefix + key} {
		if text, ok := find(s.Attributes, name); ok {
			return text, true
		}
	}
	return s.Process.Lookup(key)
}

// Lookup finds an attribute of the resource.
func (p *Process) Lookup(key string) (string, bool) { return find(p.Attributes, key) }

func find(attributes []Attribute, key string) (string, bool) {
	for i := range attributes {
		if attributes[i].Key == key {
			return attributes[i].Text, true
		}
	}
	return "", false
}
