package labelread

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/golabels"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
	"github.com/customlabels/otelcol-customlabels/internal/v8heap"
)

// Stopped is a thread that stands still.
type Stopped struct {
	TID           int // as the thread sees it, in its own PID namespace
	ThreadPointer uint64
	Goroutine     uint64 // the register that Go keeps it in: x28 on aarch64, none elsewhere
	Compat        bool   // it runs 32-bit code: there is no thread pointer that we know
}

// Source is a label source of a process.
type Source struct {
	ABI labels.ABI
	At  tlsresolve.Location
	V8  v8heap.Layout   // labels.ABIThreadContextNodeJS only
	Go  golabels.Layout // labels.ABIGo only
}

// Reading is what one thread has in one label source.
type Reading struct {
	Outcome labels.Outcome
	Addr    uint64 // of the thread-local variable; 0: this thread has none
	Pointer uint64 // what the variable holds, for v1, the thread context and Go (or the register)
	// Block is a label block for labels.Cache.Decode, whatever the outcome.
	Block []byte
	Err   error // what could not be read, and why; for the outcomes fault and invalid
}

// source is what is being read.
type source struct {
	mem tlsresolve.Memory
	Reading
	block block
}

// Read reads one label source of a stopped thread.
func Read(mem tlsresolve.Memory, machine elf.Machine, thread Stopped, src Source) Reading {
	s := source{mem: mem}
	s.Outcome = s.read(machine, &thread, &src)
	s.Block = s.block.finish(src.ABI, s.Outcome)
	return s.Reading
}

func (s *source) read(machine elf.Machine, thread *Stopped, src *Source) labels.Outcome {
	if src.ABI == labels.ABIGo {
		return s.goroutine(machine, thread, src)
	}
	if src.At.Kind != tlsresolve.Static && src.At.Module == 0 {
		return s.invalid("a module id of 0") // dtv[0] is no block
	}
	addr, err := src.At.Address(s.mem, machine, thread.ThreadPointer)
	if err != nil {
		return s.noAddress(err)
	}
	s.Addr = addr
	switch src.ABI {
	case labels.ABIV0:
		return s.labelSet(addr, false)
	case labels.ABIThreadContextNodeJS:
		return s.nodeJS(addr, src.V8)
	}
	if s.Pointer, err = s.word(addr); err != nil {
		return s.fault("the variable", err)
	}
	if s.Pointer == 0 {
		return labels.OutcomeNone
	}
	switch src.ABI {
	case labels.ABIV1:
		return s.labelSet(s.Pointer, false)
	case labels.ABIThreadContext:
		return s.threadContext(s.Pointer, false)
	}
	return s.invalid("no known ABI")
}

// noAddress turns the reasons of tlsresolve into outcomes.
func (s *source) noAddress(err error) labels.Outcome {
	for _, c := range []struct {
		err     error
		outcome labels.Outcome
	}{
		{tlsresolve.ErrNoThreadPointer, labels.OutcomeNoThreadPointer},
		{tlsresolve.ErrNotAllocated, labels.OutcomeNotAllocated},
		{tlsresolve.ErrStaleModule, labels.OutcomeStaleModule},
	} {
		if errors.Is(err, c.err) {
			return c.outcome
		}
	}
	s.Err = err
	if errors.Is(err, tlsresolve.ErrUnknownLibc) { // no known kind of location
		return labels.OutcomeInvalid
	}
	return labels.OutcomeFault
}

func (s *source) word(addr uint64) (uint64, error) {
	var b [8]byte
	if err := s.mem.ReadAt(b[:], addr); err != nil {
		return 0, fmt.Errorf("at %#x: %w", addr, err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

func (s *source) fault(what string, err error) labels.Outcome {
	s.Err = fmt.Errorf("%s: %w", what, err)
	return labels.OutcomeFault
}

func (s *source) invalid(format string, args ...any) labels.Outcome {
	s.Err = fmt.Errorf(format, args...)
	return labels.OutcomeInvalid
}
