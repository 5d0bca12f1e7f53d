package labelread

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
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

// Reading is what one thread has in one label source.
type Reading struct {
	Outcome record.Outcome
	Addr    uint64 // of the thread-local variable; 0: this thread has none
	Pointer uint64 // what the variable holds, for v1, the thread context and Go (or the register)
	// Block is a label block for labels.Decode, whatever the outcome.
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
func Read(mem tlsresolve.Memory, machine elf.Machine, thread Stopped, src record.LabelSource) Reading {
	s := source{mem: mem}
	s.Outcome = s.read(machine, &thread, &src)
	s.Block = s.block.finish(src.ABI, s.Outcome)
	return s.Reading
}

func (s *source) read(machine elf.Machine, thread *Stopped, src *record.LabelSource) record.Outcome {
	if src.ABI == record.ABIGo {
		return s.goroutine(machine, thread, src)
	}
	if src.Kind != record.TLSStatic && src.Module == 0 {
		return s.invalid("a module id of 0") // dtv[0] is no block
	}
	addr, err := tlsresolve.LocationOf(src).Address(s.mem, machine, thread.ThreadPointer)
	if err != nil {
		return s.noAddress(err)
	}
	s.Addr = addr
	switch src.ABI {
	case record.ABIV0:
		return s.labelSet(addr, false)
	case record.ABIThreadContextNodeJS:
		return s.nodeJS(addr, v8heap.Layout{Field: src.V8Field, MapType: src.V8MapType})
	}
	if s.Pointer, err = s.word(addr); err != nil {
		return s.fault("the variable", err)
	}
	if s.Pointer == 0 {
		return record.OutcomeNone
	}
	switch src.ABI {
	case record.ABIV1:
		return s.labelSet(s.Pointer, false)
	case record.ABIThreadContext:
		return s.threadContext(s.Pointer, false)
	}
	return s.invalid("no known ABI")
}

// noAddress turns the reasons of tlsresolve into outcomes.
func (s *source) noAddress(err error) record.Outcome {
	for _, c := range []struct {
		err     error
		outcome record.Outcome
	}{
		{tlsresolve.ErrNoThreadPointer, record.OutcomeNoThreadPointer},
		{tlsresolve.ErrNotAllocated, record.OutcomeNotAllocated},
		{tlsresolve.ErrStaleModule, record.OutcomeStaleModule},
	} {
		if errors.Is(err, c.err) {
			return c.outcome
		}
	}
	s.Err = err
	if errors.Is(err, tlsresolve.ErrUnknownLibc) { // no known kind of location
		return record.OutcomeInvalid
	}
	return record.OutcomeFault
}

func (s *source) word(addr uint64) (uint64, error) {
	var b [8]byte
	if err := s.mem.ReadAt(b[:], addr); err != nil {
		return 0, fmt.Errorf("at %#x: %w", addr, err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

func (s *source) fault(what string, err error) record.Outcome {
	s.Err = fmt.Errorf("%s: %w", what, err)
	return record.OutcomeFault
}

func (s *source) invalid(format string, args ...any) record.Outcome {
	s.Err = fmt.Errorf(format, args...)
	return record.OutcomeInvalid
}
