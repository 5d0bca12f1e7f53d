package pipeline

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// Refusals are said once a minute at most, with how many there were.
func TestRefusals(t *testing.T) {
	core, said := observer.New(zap.InfoLevel)
	r := newRefusals(zap.New(core), "profiles")
	now := time.Unix(1, 0)
	r.now = func() time.Time { return now }
	for range 130 {
		r.add(errors.New("full"))
		now = now.Add(time.Second)
	}
	var requests []any
	for _, e := range said.All() {
		require.Equal(t, "The next consumer refused profiles.", e.Message)
		require.Equal(t, "full", e.ContextMap()["error"])
		requests = append(requests, e.ContextMap()["requests"])
	}
	require.Equal(t, []any{int64(1), int64(60), int64(60)}, requests)
}
