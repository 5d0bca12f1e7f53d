//go:build linux && (amd64 || arm64)

package bpf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
)

// ProcessID identifies a process image: TGID as in the init PID namespace, the
// leader's start time (CLOCK_BOOTTIME, ns) and the number of execs.
type ProcessID struct {
	TGID    uint32
	StartNs uint64
	ExecID  uint64
}

func (id profilerProcessId) processID() ProcessID {
	return ProcessID{TGID: id.Tgid, StartNs: id.StartNs, ExecID: id.ExecId}
}

func (id ProcessID) key() profilerProcessId {
	return profilerProcessId{Tgid: id.TGID, StartNs: id.StartNs, ExecId: id.ExecID}
}

// Outcome of reading labels or walking a stack: enum outcome of src/record.h.
type Outcome uint8

// ThreadState is what a thread does, or why it leaves the CPU: enum thread_state
// of src/record.h.
type ThreadState uint8

// Record is one sample. Its slices are valid until the next Read into it.
type Record struct {
	// TimeNs of the interrupt, CLOCK_MONOTONIC; of a switch: when the thread left.
	TimeNs  uint64
	Process ProcessID
	// CgroupID in the v2 hierarchy.
	CgroupID uint64
	// PID and TID as the reader's PID namespace sees them; 0: not visible there.
	PID, TID uint32
	// UID in the init user namespace.
	UID uint32
	CPU uint32
	// Thread is the TID in the init PID namespace.
	Thread uint32
	// State of the thread.
	State ThreadState
	// Comm is the thread's name.
	Comm []byte
	// KernelThread has no user part.
	KernelThread bool
	// Known: the process had an entry when the sample was taken, and the thread could have labels.
	Known bool
	// Presumed: the labels come from the sources that other processes of the same program
	// had (SetProgram); no SetLabelSources has come since.
	Presumed bool
	// KernelStack and UserStack say how the walks ended.
	KernelStack, UserStack Outcome
	// Labels is the label section: label blocks as in src/record.h.
	Labels []byte
	// KernelFrames and UserFrames, leaf first. The leaf of each stack is an
	// instruction, the rest are return addresses, or one more than the address
	// where a signal interrupted a function.
	KernelFrames, UserFrames []uint64

	raw    ringbuf.Record
	frames []uint64
}

// A FormatError says that a record has another shape than the programs write.
type FormatError struct {
	Msg string
	Val any
}

func (e *FormatError) Error() string { return fmt.Sprintf("malformed record: %s: %v", e.Msg, e.Val) }

// parse fills r from the bytes in r.raw.
func (r *Record) parse() error { return r.Parse(r.raw.RawSample) }

// Parse fills r from the bytes of a sample, which its slices then refer to.
func (r *Record) Parse(b []byte) error {
	if len(b) < sampleHeaderBytes {
		return &FormatError{"shorter than its header", len(b)}
	}
	h := (*profilerSampleHeader)(unsafe.Pointer(&b[0]))
	labels, kernel, user := int(h.LabelBytes), int(h.KernelFrames), int(h.UserFrames)
	if want := sampleHeaderBytes + labels + 8*(kernel+user); len(b) < want || labels%8 != 0 {
		return &FormatError{"shorter than its sections", want}
	}
	if kernel > MaxKernelFrames || user > MaxUserFrames {
		return &FormatError{"number of frames", kernel + user}
	}
	r.TimeNs = h.TimeNs
	r.Process = h.Process.processID()
	r.CgroupID = h.CgroupId
	r.PID, r.TID, r.UID, r.CPU = h.Pid, h.Tid, h.Uid, h.Cpu
	r.Thread, r.State = h.Thread, ThreadState(h.ThreadState)
	r.KernelThread, r.Known = h.KernelThread != 0, h.Known != 0
	r.Presumed = h.Presumed != 0
	r.KernelStack, r.UserStack = Outcome(h.KernelStack), Outcome(h.UserStack)
	comm := b[unsafe.Offsetof(h.Comm):][:commBytes]
	if i := bytes.IndexByte(comm, 0); i >= 0 {
		comm = comm[:i]
	}
	r.Comm = comm
	b = b[sampleHeaderBytes:]
	r.Labels, b = b[:labels], b[labels:]
	if cap(r.frames) < kernel+user {
		r.frames = make([]uint64, MaxKernelFrames+MaxUserFrames)
	}
	frames := r.frames[:kernel+user]
	for i := range frames {
		frames[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	r.KernelFrames, r.UserFrames = frames[:kernel:kernel], frames[kernel:]
	return nil
}
