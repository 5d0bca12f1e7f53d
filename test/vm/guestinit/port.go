//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// tcsbrk with argument 1 waits until all has been sent (include/uapi/asm-generic/ioctls.h).
const tcsbrk = 0x5409

// A port is a UART of the PCI serial card, in raw mode.
type port struct{ *os.File }

// drain waits until all that was written has left.
func (p port) drain() {
	//nolint:errcheck // when it fails, vmrun misses the result and says so
	syscall.Syscall(syscall.SYS_IOCTL, p.Fd(), tcsbrk, 1)
}

type ports struct{ output, control port }

func (p ports) close() {
	p.output.Close()
	p.control.Close()
}

// openPorts finds the two ports of the card. Their ttyS numbers differ between kernels
// and architectures, so sysfs tells.
func openPorts() (ports, error) {
	ttys, err := filepath.Glob("/sys/class/tty/ttyS*")
	if err != nil {
		return ports{}, err
	}
	slices.Sort(ttys)
	var found []port
	for _, tty := range ttys {
		device, err := filepath.EvalSymlinks(tty)
		if err != nil || !strings.Contains(device, "/pci") {
			continue
		}
		f, err := os.OpenFile("/dev/"+filepath.Base(tty), os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			return ports{}, err
		}
		if err := setRaw(f); err != nil {
			f.Close() // a legacy slot with no hardware behind it
			continue
		}
		found = append(found, port{f})
	}
	if len(found) < 2 {
		return ports{}, fmt.Errorf("want 2 PCI serial ports, found %d of %v", len(found), ttys)
	}
	return ports{output: found[0], control: found[1]}, nil
}

// setRaw clears all flags of the terminal: no echo, no translation.
func setRaw(f *os.File) error {
	var tio syscall.Termios
	tio.Cflag = syscall.CS8 | syscall.CREAD | syscall.CLOCAL | syscall.B115200
	tio.Cc[syscall.VMIN] = 1
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TCSETS, uintptr(unsafe.Pointer(&tio)))
	if errno != 0 {
		return errno
	}
	return nil
}
