package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

const (
	// maxModule bounds TLS module ids: one for each loaded object with TLS.
	maxModule = 1 << 16

	// maxOffset bounds offsets from the thread pointer and in a TLS block.
	maxOffset = 1 << 32
)

// Target is what Resolve needs to know about the process besides its memory.
type Target struct {
	Machine elf.Machine
	Libc    Libc
}

// Resolve reads what the dynamic loader has put into the plan's slots and
// returns where the variable lives in that process. bias is what was added to
// the file's virtual addresses (elffile.File.LoadBias). The error is one of
// this package's or that of reading the memory, wrapped.
func (p Plan) Resolve(mem Memory, bias uint64, env Target) (Location, error) {
	if env.Machine != p.machine {
		return Location{}, fmt.Errorf("%w: %v and %v", ErrMachine, p.machine, env.Machine)
	}
	switch p.model {
	case LocalExec:
		return p.resolveLocalExec(mem, bias)
	case InitialExec:
		return p.resolveInitialExec(mem, bias)
	case Descriptor:
		return p.resolveDescriptor(mem, bias, env.Libc)
	default:
		return p.resolveGeneralDynamic(mem, bias, env.Libc)
	}
}

func (p Plan) resolveLocalExec(mem Memory, bias uint64) (Location, error) {
	l := Location{Kind: Static, Offset: p.offset}
	if p.slot == 0 {
		return l, nil
	}
	s, err := p.resolveInitialExec(mem, bias)
	if err != nil {
		return Location{}, err
	}
	if s != l {
		return Location{}, fmt.Errorf("%w: offset %d where the executable says %d", ErrImplausible, s.Offset, l.Offset)
	}
	return l, nil
}

func (p Plan) resolveInitialExec(mem Memory, bias uint64) (Location, error) {
	w, err := readWord(mem, bias+p.slot)
	if err != nil {
		return Location{}, fmt.Errorf("read TPOFF64 slot: %w", err)
	}
	if w == p.initial[0] {
		return Location{}, ErrNotRelocated
	}
	return p.static(w)
}

// static checks a relocated offset from the thread pointer. TLS blocks lie
// below it on x86-64, and behind the thread control block on aarch64.
func (p Plan) static(relocated uint64) (Location, error) {
	offset := int64(relocated) + p.adjust
	ok := offset < 0 && offset > -maxOffset
	if p.machine == elf.EM_AARCH64 {
		ok = offset >= tcbBytes && offset < maxOffset
	}
	if !ok {
		return Location{}, fmt.Errorf("%w: offset %d from the thread pointer", ErrImplausible, offset)
	}
	return Location{Kind: Static, Offset: offset}, nil
}

func (p Plan) resolveGeneralDynamic(mem Memory, bias uint64, libc Libc) (Location, error) {
	module, offset, err := readPair(mem, bias+p.slot)
	if err != nil {
		return Location{}, fmt.Errorf("read DTPMOD64 slot: %w", err)
	}
	// The loader relocates the two words one after the other. An offset that
	// is still the initial 0 may be final only for a variable at the start of
	// its block.
	if module == p.initial[0] || p.offsetSlot && offset == p.initial[1] && int64(offset)+p.adjust != p.offset {
		return Location{}, ErrNotRelocated
	}
	if !p.offsetSlot {
		return dynamic(libc, module, p.offset, 0)
	}
	return dynamic(libc, module, int64(offset)+p.adjust, 0)
}

// dynamic checks a module id and an offset in the module's block.
func dynamic(libc Libc, module uint64, offset int64, generation uint64) (Location, error) {
	if module == 0 || module > maxModule {
		return Location{}, fmt.Errorf("%w: module id %d", ErrImplausible, module)
	}
	if offset < 0 || offset >= maxOffset {
		return Location{}, fmt.Errorf("%w: offset %d in the TLS block", ErrImplausible, offset)
	}
	switch libc {
	case Glibc:
		return Location{Kind: DTVGlibc, Offset: offset, Module: module, Generation: generation}, nil
	case Musl:
		return Location{Kind: DTVMusl, Offset: offset, Module: module}, nil
	}
	return Location{}, ErrUnknownLibc
}

func readPair(mem Memory, addr uint64) (first, second uint64, err error) {
	var b [16]byte
	if err := mem.ReadAt(b[:], addr); err != nil {
		return 0, 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:]), nil
}
