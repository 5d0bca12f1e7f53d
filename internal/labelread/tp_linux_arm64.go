package labelread

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ntARMTLS is NT_ARM_TLS of include/uapi/linux/elf.h: TPIDR_EL0, and TPIDR2_EL0
// behind it on kernels that know it.
const ntARMTLS = 0x401

func threadPointer(tid int, _ *unix.PtraceRegs) (uint64, error) {
	var tp uint64
	_, err := regset(tid, ntARMTLS, unsafe.Pointer(&tp), unsafe.Sizeof(tp))
	return tp, err
}

// goroutine is the register that Go keeps its goroutine in when it has no variable.
func goroutine(general *unix.PtraceRegs) uint64 { return general.Regs[28] }
