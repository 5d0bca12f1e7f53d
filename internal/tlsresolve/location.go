package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Memory reads the memory of a process.
type Memory interface {
	// ReadAt fills p from address addr, or returns an error.
	ReadAt(p []byte, addr uint64) error
}

// Location is where a thread-local variable of one process lives, relative to
// a thread. It is comparable: equal locations are the same variable.
type Location struct {
	Kind   record.TLSKind
	Offset int64  // from the thread pointer, or in the module's TLS block
	Module uint64 // DTV kinds: the module's id, from 1
	// Generation, when not 0, is the one that a thread's DTV must have
	// reached for its entry to be this module's (record.TLSDTVGlibc).
	Generation uint64
}

// LocationOf is where the variable of a label source is.
func LocationOf(s *record.LabelSource) Location {
	return Location{Kind: s.Kind, Offset: s.Offset, Module: s.Module, Generation: s.Generation}
}

// Source is a label source of an ABI at the location.
func (l Location) Source(abi record.ABI) record.LabelSource {
	return record.LabelSource{ABI: abi, Kind: l.Kind, Offset: l.Offset, Module: l.Module, Generation: l.Generation}
}

// Address computes the variable's address on the thread with thread pointer
// tp. The error is ErrNoThreadPointer, ErrNotAllocated, ErrStaleModule, or
// that of reading the memory, wrapped.
//
// The DTV is read anew each time: the thread may replace it.
func (l Location) Address(mem Memory, machine elf.Machine, tp uint64) (uint64, error) {
	if tp == 0 {
		return 0, ErrNoThreadPointer
	}
	switch l.Kind {
	case record.TLSStatic:
		return tp + uint64(l.Offset), nil
	case record.TLSDTVGlibc:
		return l.glibc(mem, machine, tp)
	case record.TLSDTVMusl:
		return l.musl(mem, machine, tp)
	}
	return 0, fmt.Errorf("location kind %d: %w", l.Kind, ErrUnknownLibc)
}

// glibc walks its DTV (sysdeps/generic/dl-dtv.h, nptl/allocatestack.c): entries
// of {val, to_free}; dtv[-1] holds the number of slots, dtv[0] the generation.
// dtv is the second word of the TCB on x86-64 (tcbhead_t), the first on
// aarch64.
func (l Location) glibc(mem Memory, machine elf.Machine, tp uint64) (uint64, error) {
	field := tp + 8
	if machine == elf.EM_AARCH64 {
		field = tp
	}
	dtv, err := readDTV(mem, field)
	if err != nil {
		return 0, err
	}
	var head [24]byte // dtv[-1].counter, -, dtv[0].counter
	if err := mem.ReadAt(head[:], dtv-16); err != nil {
		return 0, fmt.Errorf("read DTV: %w", err)
	}
	slots, generation := binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[16:])
	if l.Module == 0 || l.Module > min(slots, maxModule) {
		return 0, ErrNotAllocated
	}
	if l.Generation > generation {
		return 0, ErrStaleModule
	}
	block, err := readWord(mem, dtv+16*l.Module)
	if err != nil {
		return 0, fmt.Errorf("read DTV entry: %w", err)
	}
	if block == 0 || block == ^uint64(0) { // never used; TLS_DTV_UNALLOCATED
		return 0, ErrNotAllocated
	}
	return block + uint64(l.Offset), nil
}

// musl walks its DTV (src/internal/pthread_impl.h): pointers, dtv[0] is their
// number. dtv is the second word of struct pthread on x86-64, which tp points
// at, and its last on aarch64, where tp points behind it.
func (l Location) musl(mem Memory, machine elf.Machine, tp uint64) (uint64, error) {
	field := tp + 8
	if machine == elf.EM_AARCH64 {
		field = tp - 8
	}
	dtv, err := readDTV(mem, field)
	if err != nil {
		return 0, err
	}
	count, err := readWord(mem, dtv)
	if err != nil {
		return 0, fmt.Errorf("read DTV: %w", err)
	}
	if l.Module == 0 || l.Module > min(count, maxModule) {
		return 0, ErrNotAllocated
	}
	block, err := readWord(mem, dtv+8*l.Module)
	if err != nil {
		return 0, fmt.Errorf("read DTV entry: %w", err)
	}
	if block == 0 {
		return 0, ErrNotAllocated
	}
	return block + uint64(l.Offset), nil
}

// readDTV reads the pointer to the DTV; a thread that is being set up has none.
func readDTV(mem Memory, field uint64) (uint64, error) {
	dtv, err := readWord(mem, field)
	if err != nil {
		return 0, fmt.Errorf("read DTV pointer: %w", err)
	}
	if dtv == 0 {
		return 0, ErrNotAllocated
	}
	return dtv, nil
}

func readWord(mem Memory, addr uint64) (uint64, error) {
	var b [8]byte
	if err := mem.ReadAt(b[:], addr); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
