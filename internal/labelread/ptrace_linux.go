//go:build linux && (amd64 || arm64)

package labelread

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NT_PRSTATUS of include/uapi/linux/elf.h: the general registers.
const ntPrstatus = 1

// cldTrapped is CLD_TRAPPED of asm-generic/siginfo.h: a traced task has stopped.
const cldTrapped = 4

// childInfo is siginfo_t for SIGCHLD, on 64-bit machines (asm-generic/siginfo.h).
type childInfo struct {
	signo, errno, code int32
	_                  int32
	pid                int32
	uid                uint32
	status             int32
	_                  [100]byte
}

func waitid(tid int, info *childInfo, options int) error {
	return unix.Waitid(unix.P_PID, tid, (*unix.Siginfo)(unsafe.Pointer(info)), options, nil)
}

// registers returns what a stopped thread's registers say.
func registers(tid int) (Stopped, error) {
	var general unix.PtraceRegs
	size := unsafe.Sizeof(general)
	n, err := regset(tid, ntPrstatus, unsafe.Pointer(&general), size)
	if err != nil {
		return Stopped{}, fmt.Errorf("read registers: %w", vanished(err))
	}
	if n != size {
		return Stopped{Compat: true}, nil // those of 32-bit code are fewer and shorter
	}
	tp, err := threadPointer(tid, &general)
	if err != nil {
		return Stopped{}, fmt.Errorf("read thread pointer: %w", vanished(err))
	}
	return Stopped{ThreadPointer: tp, Goroutine: goroutine(&general)}, nil
}

// regset reads a set of registers and returns how many bytes there are.
func regset(tid, kind int, p unsafe.Pointer, size uintptr) (uintptr, error) {
	iov := unix.Iovec{Base: (*byte)(p)}
	iov.SetLen(int(size))
	_, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), uintptr(kind), uintptr(unsafe.Pointer(&iov)), 0, 0)
	if err != 0 {
		return 0, err
	}
	return uintptr(iov.Len), nil
}

// detach lets a stopped thread go on, with the signal that it was about to take.
// It cannot when the thread was killed, which ends every stop.
func detach(tid, signal int) error {
	_, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(signal), 0, 0)
	if err != 0 {
		return fmt.Errorf("detach: %w", vanished(err))
	}
	return nil
}
