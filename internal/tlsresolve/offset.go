package tlsresolve

import "debug/elf"

// tcbBytes is the size of the thread control block between the thread pointer
// and the first TLS block on aarch64.
const tcbBytes = 16

// LocalExecOffset computes the offset from the thread pointer of a variable of
// the main executable from the executable's PT_TLS (p_vaddr, p_memsz, p_align)
// and the symbol's value. With x, m, a and s for these:
//
//	x86-64 (variant II):  s - m - ((-x - m) mod a)
//	aarch64 (variant I):  s + 16 + ((x - 16) mod a)
//
// The block ends at (begins behind) the thread control block, moved away so
// that its address is congruent to p_vaddr modulo p_align. For any other
// machine the result is 0.
func LocalExecOffset(machine elf.Machine, tlsVaddr, tlsMemsz, tlsAlign, symValue uint64) int64 {
	a := max(tlsAlign, 1)
	switch machine {
	case elf.EM_X86_64:
		return int64(symValue - tlsMemsz - (-tlsVaddr-tlsMemsz)%a)
	case elf.EM_AARCH64:
		return int64(symValue + tcbBytes + (tlsVaddr-tcbBytes)%a)
	}
	return 0
}
