package procfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrFault says that an address of a process cannot be read.
var ErrFault = errors.New("bad address")

// Memory reads the memory of a process. It needs CAP_SYS_PTRACE or the same
// user as the process.
type Memory struct {
	PID int
}

// ReadAt fills p from the address addr, or returns an error: ErrFault if not
// all of it is mapped readable, ErrNoProcess if the process has gone.
func (m Memory) ReadAt(p []byte, addr uint64) error {
	if len(p) == 0 {
		return nil
	}
	if addr+uint64(len(p)) < addr {
		return fmt.Errorf("read %d bytes at %#x: %w", len(p), addr, ErrFault)
	}
	local := unix.Iovec{Base: &p[0]}
	local.SetLen(len(p))
	remote := unix.RemoteIovec{Base: uintptr(addr), Len: len(p)}
	n, err := unix.ProcessVMReadv(m.PID, []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	switch {
	case err == unix.EFAULT, err == nil && n < len(p):
		return fmt.Errorf("read %d bytes at %#x: %w", len(p), addr, ErrFault)
	case err != nil:
		return fmt.Errorf("read %d bytes at %#x: %w", len(p), addr, gone(err))
	}
	return nil
}
