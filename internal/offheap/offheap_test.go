//go:build unix

package offheap_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

type pair struct {
	a uint64
	b uint32
}

// A list has the room that it was made with, of memory that is not Go's.
func TestReserve(t *testing.T) {
	const n = 1 << 20
	before := allocated()
	list, free := offheap.Reserve[pair](n)
	defer free()
	require.Empty(t, list)
	require.GreaterOrEqual(t, cap(list), n)
	first := &list[:1][0]
	for i := range n {
		list = append(list, pair{uint64(i), uint32(i)})
	}
	require.Same(t, first, &list[0], "it did not move")
	require.Equal(t, pair{n - 1, n - 1}, list[n-1])
	require.Less(t, allocated()-before, uint64(64<<10))
}

// Where there is no such memory, a list is Go's.
func TestReserveTooMuch(t *testing.T) {
	for _, n := range []int{0, 1 << 48} {
		list, free := offheap.Reserve[uint64](n)
		list = append(list, 7)
		free()
		require.Equal(t, []uint64{7}, list, n)
	}
}

// Memory that holds no whole value is no list.
func TestOfTooLittle(t *testing.T) {
	require.Nil(t, offheap.Of[pair](nil))
	require.Nil(t, offheap.Of[pair](make([]byte, 15)))
	require.Len(t, offheap.Of[uint32](make([]byte, 15)), 3)
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
