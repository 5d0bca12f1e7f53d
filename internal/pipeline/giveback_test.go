//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Memory goes back to the system once, when the first looks have been taken, and a shutdown before does
// not wait for that.
func TestGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, freed := time.Now(), 0
		giveBack(make(chan struct{}), func() { freed++ })
		require.Equal(t, 1, freed)
		require.Equal(t, firstLooks, time.Since(began))
	})
	synctest.Test(t, func(t *testing.T) {
		began, stopped := time.Now(), make(chan struct{})
		time.AfterFunc(firstLooks-1, func() { close(stopped) })
		giveBack(stopped, func() { t.Error("it has ended") })
		require.Equal(t, firstLooks-1, time.Since(began))
	})
}
