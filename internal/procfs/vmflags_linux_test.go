package procfs

import (
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestVMFlags(t *testing.T) {
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer unix.Munmap(b)
	require.NoError(t, unix.Madvise(b, unix.MADV_DONTFORK))
	start := uint64(uintptr(unsafe.Pointer(&b[0])))
	flags, ok, err := FS{}.VMFlags(os.Getpid(), start)
	require.NoError(t, err)
	require.True(t, ok)
	require.Contains(t, flags, DontFork)

	_, ok, err = FS{}.VMFlags(os.Getpid(), 4096)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestVMFlagsOfText(t *testing.T) {
	const text = "00400000-00401000 r--p 0 0:0 0 a\nVmFlags: rd mr\n7f00000000-7f00001000 rw-p 0 0:0 0 b\nSize: 4 kB\nVmFlags: rd wr dc\n"
	flags, ok, err := readVMFlags(strings.NewReader(text), 0x7f00000000)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []VMFlag{"rd", "wr", DontFork}, flags)
	_, ok, err = readVMFlags(strings.NewReader(text[:len(text)-20]), 0x7f00000000)
	require.NoError(t, err)
	require.False(t, ok, "flags that are not there")
}
