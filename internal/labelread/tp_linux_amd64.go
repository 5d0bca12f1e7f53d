package labelread

import "golang.org/x/sys/unix"

func threadPointer(_ int, general *unix.PtraceRegs) (uint64, error) { return general.Fs_base, nil }

// goroutine is the register that Go keeps its goroutine in when it has no variable.
func goroutine(_ *unix.PtraceRegs) uint64 { return 0 }
