package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// Memory reads the memory of a process.
type Memory interface {
	// ReadAt fills p from address addr, or returns an error.
	ReadAt(p []byte, addr uint64) error
}

// Kind is the way in which a thread-local address is computed. The values
// equal enum tls_kind of the BPF programs.
type Kind uint8

// The kinds of locations.
const (
	Static   Kind = iota // thread pointer + offset
	DTVGlibc             // dtv[module] + offset, 16-byte entries
	DTVMusl              // dtv[module] + offset, 8-byte entries
	Register             // no variable: the register that Go keeps its goroutine in (aarch64)
)

// String returns the kind in words.
func (k Kind) String() string {
	switch k {
	case Static:
		return "static"
	case DTVGlibc:
		return "glibc DTV"
	case DTVMusl:
		return "musl DTV"
	case Register:
		return "register"
	}
	return "unknown"
}

// Location is where a thread-local variable of one process lives, relative to
// a thread. It is comparable: equal locations are the same variable.
type Location struct {
	Kind   Kind
	Offset int64  // from the thread pointer, or in the module's TLS block
	Module uint64 // DTV kinds: the module's id, from 1
	// Generation, when not 0, is the one that a thread's DTV must have
	// reached for its entry to be this module's (DTVGlibc).
	Generation uint64
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
	case Static:
		return tp + uint64(l.Offset), nil
	case DTVGlibc:
		return l.glibc(mem, machine, tp)
	case DTVMusl:
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
