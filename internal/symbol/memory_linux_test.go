package symbol

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Go's heap holds neither a large table nor what was needed to make it, and the
// memory is given back with the table.
func TestOutsideOfHeap(t *testing.T) {
	const functions = 100_000
	var name []byte
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := allocated()
	table := &Table{}
	var all entries
	discard := all.begin(64 << 20)
	for i := range uint64(functions) {
		name = strconv.AppendUint(append(name[:0], "function_"...), i, 10)
		require.True(t, all.add(i*16, 16, name, 64<<20))
	}
	table.compact = compactAll(table, &all)
	discard()
	require.Greater(t, table.Bytes(), 8*functions)
	require.Less(t, table.Bytes(), 14*functions, "the names are compressed")
	// With the race detector, tables of the compression are made anew now and then.
	require.Less(t, allocated()-before, uint64(2<<20))
	require.Equal(t, functions, table.Len())
	got, ok := table.Lookup(4711*16 + 5)
	require.True(t, ok)
	require.Equal(t, "function_4711", got)

	last := &table.starts[functions-1]
	mapped := func() bool { // only mapped memory can be asked about
		var resident [1]byte
		page := uintptr(unsafe.Pointer(last)) &^ uintptr(os.Getpagesize()-1)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, page, 1, uintptr(unsafe.Pointer(&resident)))
		return errno == 0
	}
	require.True(t, mapped())
	require.Eventually(t, func() bool {
		runtime.GC()
		return !mapped()
	}, time.Minute, 10*time.Millisecond)
}
