package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
)

// Users keep the series that they have; those beyond the bound share one.
func TestUserSeries(t *testing.T) {
	var u userSeries
	for uid := range uint32(maxUserSeries) {
		require.Equal(t, int(uid), u.of(1000+uid))
	}
	require.Equal(t, otherUsers, u.of(7))
	require.Equal(t, otherUsers, u.of(8))
	require.Equal(t, 0, u.of(1000))
	require.Equal(t, attribute.Int64("user.id", 1063), u.attribute(63))
	require.Equal(t, attribute.Bool("user.other", true), u.attribute(otherUsers))
}
