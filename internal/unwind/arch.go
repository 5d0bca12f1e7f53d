package unwind

import "debug/elf"

// arch has the DWARF register numbers of a machine (System V ABI of x86-64,
// figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1).
type arch struct {
	machine   elf.Machine
	sp, fp    uint64
	ra        uint64 // column of the return address
	registers uint64 // numbers below are general registers
}

func archOf(m elf.Machine) arch {
	if m == elf.EM_AARCH64 {
		return arch{machine: m, sp: 31, fp: 29, ra: 30, registers: 31}
	}
	return arch{machine: m, sp: 7, fp: 6, ra: 16, registers: 16}
}
