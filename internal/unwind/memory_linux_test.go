package unwind_test

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// The rows of a large file are outside of Go's heap, and their memory is given back when the
// table is closed.
func TestOutsideOfHeap(t *testing.T) {
	file, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	e, err := elffile.New(file, info.Size())
	require.NoError(t, err)
	table, err := unwind.New(e, unwind.Limits{})
	require.NoError(t, err)
	lists := 4 * uint64(len(table.Rows)+len(table.Index))
	require.Greater(t, lists, uint64(200<<10), "a large file")

	mapped := func(p unsafe.Pointer) bool { // only mapped memory can be asked about
		var resident [1]byte
		page := uintptr(p) &^ uintptr(os.Getpagesize()-1)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, page, 1, uintptr(unsafe.Pointer(&resident)))
		return errno == 0
	}
	rows, index := unsafe.Pointer(&table.Rows[0]), unsafe.Pointer(&table.Index[0])
	require.True(t, mapped(rows) && mapped(index))
	table.Close()
	require.False(t, mapped(rows) || mapped(index))
	require.Zero(t, table.UnwindTable)
}
