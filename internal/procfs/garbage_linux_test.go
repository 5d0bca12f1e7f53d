//go:build !race

package procfs

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is read of a process leaves little garbage: its files are read on the stack, its mappings
// with the same buffer. With the race detector, what a system call fills is on the heap.
func TestReadingLeavesLittle(t *testing.T) {
	var lines MappingReader
	pid := os.Getpid()
	read := func() {
		_, err := FS{}.Stat(pid)
		require.NoError(t, err)
		_, err = FS{}.Status(pid)
		require.NoError(t, err)
		_, err = FS{}.Cgroup(pid)
		require.NoError(t, err)
		for m, err := range lines.Mappings(FS{}, pid) {
			if err != nil || m.Limit == 0 {
				t.Fatal(m, err)
			}
		}
	}
	read()
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		read()
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/times, uint64(firstRead), "as much as one buffer")
}
