package testutil

import (
	"debug/elf"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Symbol returns a function of a file.
func Symbol(t testing.TB, path, name string) elf.Symbol {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	all, err := f.Symbols()
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(s elf.Symbol) bool { return s.Name == name })
	require.GreaterOrEqual(t, i, 0, "%s has no %s", path, name)
	return all[i]
}

// ProbeReturn has the kernel count the returns of a function of a program until the end of the test, with a uretprobe:
// it replaces the return address of each call.
func ProbeReturn(t testing.TB, path, name string) { probe(t, path, name, 0, 1) }

// Probe has it count how often an instruction is executed, with a uprobe. offset: of bytes in the function.
func Probe(t testing.TB, path, name string, offset uint64) { probe(t, path, name, offset, 0) }

// probe opens an event of the PMU uprobe (perf_uprobe_event_init in kernel/events/core.c); config is 1 for returns.
func probe(t testing.TB, path, name string, offset, config uint64) {
	t.Helper()
	text, err := os.ReadFile("/sys/bus/event_source/devices/uprobe/type")
	require.NoError(t, err)
	kind, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
	require.NoError(t, err)
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	symbol := Symbol(t, path, name)
	section := f.Sections[symbol.Section]
	file, err := unix.BytePtrFromString(path)
	require.NoError(t, err)
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
		Type: uint32(kind), Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: config,
		Ext1: uint64(uintptr(unsafe.Pointer(file))), Ext2: symbol.Value - section.Addr + section.Offset + offset,
	}, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	runtime.KeepAlive(file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
}
