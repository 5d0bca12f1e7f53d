package pipeline

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the kernel has forgotten of a user stays counted.
func TestUserDrops(t *testing.T) {
	var d userDrops
	var series userSeries
	look := func(total uint64, drops map[uint32]uint64) ByUser {
		return d.update(&series, total, func() (map[uint32]uint64, error) { return drops, nil })
	}
	look(5, map[uint32]uint64{7: 5})
	look(9, map[uint32]uint64{7: 6, 8: 3})
	require.Equal(t, look(9, nil), ByUser{6, 3}, "nothing has changed")
	look(11, map[uint32]uint64{8: 5})
	sums := look(13, map[uint32]uint64{7: 2, 8: 5})
	require.Equal(t, ByUser{8, 5}, sums)
	require.Equal(t, sums, d.update(&series, 20, func() (map[uint32]uint64, error) { return nil, errors.New("no") }))
	require.Equal(t, ByUser{9, 5}, look(20, map[uint32]uint64{7: 3, 8: 5}), "the look that failed is made up for")
	require.Equal(t, ByUser{10, 5}, look(27, map[uint32]uint64{7: 1, 8: 5}), "forgotten and back between two looks")
}
