package v8js

import (
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// process is the V8 of a process: of all its isolates, the main thread's and those of workers.
type process struct {
	layout  *Layout
	scripts scripts
}

// Open implements langruntime.Runtime.
func (l *Layout) Open(langruntime.Memory, uint64) (langruntime.Process, error) {
	return &process{layout: l}, nil
}

// Kind implements langruntime.Process.
func (*process) Kind() record.RuntimeKind { return record.RuntimeV8 }

// Record implements langruntime.Process.
func (p *process) Record() record.RuntimeProcess {
	return record.RuntimeProcess{Kind: record.RuntimeV8, V8: p.layout.process}
}

// Held implements langruntime.Holder.
func (p *process) Held() int { return p.scripts.bytes() }

var _ langruntime.Holder = (*process)(nil)

// function is one that was read, for its interpreter or baseline code.
type function struct {
	named
	lines   lines
	partial bool // V8 has not noted lines yet
}

// Partial implements langruntime.Partial.
func (f *function) Partial() bool { return f.partial }

// Frames implements langruntime.Function.
func (f *function) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	line := 0
	if position > 0 {
		line, _ = f.lines.at(position - 1)
	}
	return append(to, f.frame(line))
}

// Bytes implements langruntime.Function.
func (f *function) Bytes() int {
	return int(unsafe.Sizeof(*f)) + f.named.bytes() + f.lines.bytes()
}

func (f *named) frame(line int) langruntime.Frame {
	return langruntime.Frame{Name: f.name, File: f.file, Line: line, StartLine: f.start}
}

func (f *named) bytes() int { return len(f.name) + len(f.file) }
