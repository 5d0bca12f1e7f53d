//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// counted is a source that has only counters.
type counted struct {
	source
	counters bpf.Counters
}

func (c *counted) Counters() (bpf.Counters, error) { return c.counters, nil }
func (c *counted) UnreadBytes() int                { return 0 }

// Missed ticks are told, and are no part of the hits.
func TestStreamMissedTicks(t *testing.T) {
	o := Defaults()
	s := newStream(&o, profile.KindCPU, &counted{counters: bpf.Counters{Hits: 100, FilteredIdle: 60, MissedTicks: 7}}, nil, nil)
	of, _ := s.snapshot()
	require.EqualValues(t, 7, of.MissedTicks)
	require.EqualValues(t, 40, of.Pending())
	s.freeze()
	of, _ = s.snapshot()
	require.EqualValues(t, 7, of.MissedTicks, "when sampling has ended")
}
