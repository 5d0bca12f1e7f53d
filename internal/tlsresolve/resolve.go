package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
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

	// Modules, when not nil, finds libraries that no relocation leads to, and
	// tells when a module's id has been another's before.
	Modules *Modules

	// Definitions are all known definitions of the variable in the process, in
	// any order; the plan's own may be among them. They matter where one can
	// have taken the place of another.
	Definitions []Definition
}

// Definition is a definition of the variable: the plan of a file, and what was
// added to the file's virtual addresses.
type Definition struct {
	Plan Plan
	Bias uint64
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
		return p.resolveLocalExec(mem, bias, env)
	case InitialExec:
		return p.resolveInitialExec(mem, bias, env)
	case Descriptor:
		return p.resolveDescriptor(mem, bias, env)
	case ModuleOnly:
		return p.resolveModule(mem, bias, env)
	default:
		return p.resolveGeneralDynamic(mem, bias, env)
	}
}

func (p Plan) resolveLocalExec(mem Memory, bias uint64, env Target) (Location, error) {
	l := Location{Kind: record.TLSStatic, Offset: p.offset}
	if p.slot == 0 {
		return l, nil
	}
	s, err := p.resolveInitialExec(mem, bias, env)
	if err != nil {
		return Location{}, err
	}
	if s != l {
		return Location{}, fmt.Errorf("%w: offset %d where the executable says %d", ErrImplausible, s.Offset, l.Offset)
	}
	return l, nil
}

func (p Plan) resolveInitialExec(mem Memory, bias uint64, env Target) (Location, error) {
	w, err := readWord(mem, bias+p.slot)
	if err != nil {
		return Location{}, fmt.Errorf("read TPOFF64 slot: %w", err)
	}
	if w == p.initial[0] && !p.atThreadPointer(mem, bias, env, int64(w)+p.adjust) {
		return Location{}, ErrNotRelocated
	}
	return p.static(w, env.Libc)
}

// static is the location of a relocated offset from the thread pointer.
func (p Plan) static(relocated uint64, libc Libc) (Location, error) {
	return static(p.machine, libc, int64(relocated)+p.adjust)
}

// static checks an offset from the thread pointer. TLS blocks lie below it on
// x86-64, and on aarch64 behind the thread control block, of which musl has none.
func static(machine elf.Machine, libc Libc, offset int64) (Location, error) {
	ok := offset < 0 && offset > -maxOffset
	if machine == elf.EM_AARCH64 {
		ok = offset >= tcbBytes && offset < maxOffset || libc == Musl && offset >= 0 && offset < tcbBytes
	}
	if !ok {
		return Location{}, fmt.Errorf("%w: offset %d from the thread pointer", ErrImplausible, offset)
	}
	return Location{Kind: record.TLSStatic, Offset: offset}, nil
}

func (p Plan) resolveGeneralDynamic(mem Memory, bias uint64, env Target) (Location, error) {
	module, offset, err := readPair(mem, bias+p.slot)
	if err != nil {
		return Location{}, fmt.Errorf("read DTPMOD64 slot: %w", err)
	}
	if module == p.initial[0] {
		return Location{}, ErrNotRelocated
	}
	if !p.offsetSlot {
		return p.dynamic(mem, env, module, int64(p.value), 0)
	}
	// The loader relocates the two words one after the other.
	var unsure error
	if offset == p.initial[1] {
		unsure = p.final(mem, bias, env, module, offset+uint64(p.adjust))
	}
	if unsure != nil && !errors.Is(unsure, ErrUnsure) {
		return Location{}, fmt.Errorf("%w: offset of module %d", unsure, module)
	}
	location, err := p.dynamic(mem, env, module, int64(offset)+p.adjust, 0)
	if err == nil {
		err = unsure
	}
	return location, err
}

// dynamic is the location of a module id and an offset in the module's block.
func (p Plan) dynamic(mem Memory, env Target, module uint64, offset int64, generation uint64) (Location, error) {
	if module == 0 || module > maxModule {
		return Location{}, fmt.Errorf("%w: module id %d", ErrImplausible, module)
	}
	if offset < 0 || offset >= maxOffset {
		return Location{}, fmt.Errorf("%w: offset %d in the TLS block", ErrImplausible, offset)
	}
	switch env.Libc {
	case Glibc:
		if env.Modules != nil {
			return env.Modules.glibc(mem, p.machine, module, offset, generation)
		}
		return Location{Kind: record.TLSDTVGlibc, Offset: offset, Module: module, Generation: generation}, nil
	case Musl:
		return Location{Kind: record.TLSDTVMusl, Offset: offset, Module: module}, nil
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
