package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Users keep the series that they have; those beyond the bound share one.
func TestUserSeries(t *testing.T) {
	var u userSeries
	for uid := range uint32(maxUserSeries) {
		require.Equal(t, int(uid), u.of(1000+uid))
	}
	require.Equal(t, OtherUsers, u.of(7))
	require.Equal(t, OtherUsers, u.of(8))
	require.Equal(t, 0, u.of(1000))
	require.Len(t, u.users(), maxUserSeries)
	require.EqualValues(t, 1063, u.users()[63])
}
