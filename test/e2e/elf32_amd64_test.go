//go:build linux

package e2e

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// spin32 asks for a signal after two minutes, then computes, with a system call now and then.
var spin32 = []byte{
	0xb8, 27, 0, 0, 0, // mov eax, 27 (alarm)
	0xbb, 120, 0, 0, 0, // mov ebx, 120
	0xcd, 0x80, // int 0x80
	0xb9, 0, 0, 0x10, 0, // again: mov ecx, 0x100000
	0x49,       // count: dec ecx
	0x75, 0xfd, // jnz count
	0xb8, 20, 0, 0, 0, // mov eax, 20 (getpid)
	0xcd, 0x80, // int 0x80
	0xeb, 0xef, // jmp again
}

// start32 runs a static 32-bit program until the end of the test and returns its PID.
func start32(t *testing.T) int {
	t.Helper()
	const base, headers = 0x08048000, 52 + 32
	le := binary.LittleEndian
	b := []byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, half := range []uint16{2, 3} { // ET_EXEC, EM_386
		b = le.AppendUint16(b, half)
	}
	for _, word := range []uint32{1, base + headers, 52, 0, 0} { // version, entry, phoff, shoff, flags
		b = le.AppendUint32(b, word)
	}
	for _, half := range []uint16{52, 32, 1, 40, 0, 0} { // ehsize, phentsize, phnum, shentsize, shnum, shstrndx
		b = le.AppendUint16(b, half)
	}
	size := uint32(headers + len(spin32))
	for _, word := range []uint32{1, 0, base, base, size, size, 5, 0x1000} { // PT_LOAD, read and execute
		b = le.AppendUint32(b, word)
	}
	path := filepath.Join(t.TempDir(), "spin32")
	require.NoError(t, os.WriteFile(path, append(b, spin32...), 0o700))
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start(), "needs a kernel with CONFIG_IA32_EMULATION")
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill(), "it spins until then")
		_ = cmd.Wait() // says that it was killed
	})
	return cmd.Process.Pid
}
