package record

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Small allocations are rounded up to a power of two, large ones to a page.
func TestMapAreaBytes(t *testing.T) {
	for n, want := range map[int]int{
		12<<10 + 512: 16 << 10, 16 << 10: 16 << 10, 16<<10 + 1: 32 << 10, 32 << 10: 32 << 10, 32<<10 + 1: 36 << 10, 1<<20 + 512: 1<<20 + 4<<10,
	} {
		require.Equal(t, want, mapAreaBytes(n, 4<<10), "%d", n)
	}
	require.Equal(t, 64<<10, mapAreaBytes(36<<10, 64<<10), "of larger pages, more are whole")
}
