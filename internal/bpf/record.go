//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Record is one sample. Its slices are valid until the next Read into it.
type Record struct {
	// TimeNs of the interrupt, CLOCK_MONOTONIC; of a switch: when the thread left.
	TimeNs  uint64
	Process record.ProcessID
	// PID and TID as the reader's PID namespace sees them; 0: not visible there.
	PID, TID uint32
	// UID in the init user namespace.
	UID uint32
	CPU uint32
	// State of the thread.
	State record.ThreadState
	// Comm is the thread's name.
	Comm []byte
	// KernelThread has no user part.
	KernelThread bool
	// Presumed: the labels come from the sources that other processes of the same program
	// had (SetProgram); no SetLabelSources has come since.
	Presumed bool
	// KernelStack and UserStack say how the walks ended.
	KernelStack, UserStack record.Outcome
	// Labels is the label section: label blocks as in src/record.h.
	Labels []byte
	// KernelFrames and UserFrames, leaf first. The leaf of each stack is an
	// instruction, the rest are return addresses, or one more than the address
	// where a signal interrupted a function.
	KernelFrames, UserFrames []uint64

	raw    []byte
	frames []uint64
}

// Clone returns a copy that stays valid.
func (r *Record) Clone() Record {
	c := *r
	c.Comm, c.Labels = bytes.Clone(r.Comm), bytes.Clone(r.Labels)
	c.KernelFrames, c.UserFrames = slices.Clone(r.KernelFrames), slices.Clone(r.UserFrames)
	c.raw, c.frames = nil, nil
	return c
}

// A FormatError says that a record has another shape than the programs write.
type FormatError struct {
	Msg string
	Val any
}

func (e *FormatError) Error() string { return fmt.Sprintf("malformed record: %s: %v", e.Msg, e.Val) }

// parse fills r from the bytes in r.raw.
func (r *Record) parse() error { return r.Parse(r.raw) }

// Parse fills r from the bytes of a sample, which its slices then refer to.
func (r *Record) Parse(b []byte) error {
	if len(b) < record.SampleHeaderBytes {
		return &FormatError{"shorter than its header", len(b)}
	}
	h := (*record.SampleHeader)(unsafe.Pointer(&b[0]))
	labels, kernel, user := int(h.LabelBytes), int(h.KernelFrames), int(h.UserFrames)
	if want := record.SampleHeaderBytes + labels + 8*(kernel+user); len(b) < want || labels%8 != 0 {
		return &FormatError{"shorter than its sections", want}
	}
	if kernel > record.MaxKernelFrames || user > record.MaxUserFrames {
		return &FormatError{"number of frames", kernel + user}
	}
	r.TimeNs = h.TimeNs
	r.Process = h.Process
	r.PID, r.TID, r.UID, r.CPU = h.PID, h.TID, h.UID, h.CPU
	r.State, r.KernelThread, r.Presumed = h.ThreadState, h.KernelThread != 0, h.Presumed != 0
	r.KernelStack, r.UserStack = h.KernelStack, h.UserStack
	comm := b[unsafe.Offsetof(h.Comm):][:record.CommBytes]
	if i := bytes.IndexByte(comm, 0); i >= 0 {
		comm = comm[:i]
	}
	r.Comm = comm
	b = b[record.SampleHeaderBytes:]
	r.Labels, b = b[:labels], b[labels:]
	if cap(r.frames) < kernel+user {
		r.frames = make([]uint64, record.MaxKernelFrames+record.MaxUserFrames)
	}
	frames := r.frames[:kernel+user]
	for i := range frames {
		frames[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	r.KernelFrames, r.UserFrames = frames[:kernel:kernel], frames[kernel:]
	return nil
}
