//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// told takes what it is told.
type told struct{ programs }

func (told) SetLabelSources(_ record.ProcessID, sources []record.LabelSource) error {
	if len(sources) > 1 {
		return errors.New("no room")
	}
	return nil
}
func (told) Filter(record.ProcessID) error { return nil }
func (told) Forget(record.ProcessID) error { return nil }

// Processes with label sources are counted for as long as they have some.
func TestPublisherCountsLabelled(t *testing.T) {
	p := publishTo(told{})
	for _, id := range []record.ProcessID{{TGID: 1}, {TGID: 2}, {TGID: 3}, {TGID: 4}} {
		require.NoError(t, p.SetLabelSources(id, make([]record.LabelSource, 1)))
	}
	require.Equal(t, 4, p.labelled())
	require.NoError(t, p.SetLabelSources(record.ProcessID{TGID: 1}, nil))
	require.NoError(t, p.Filter(record.ProcessID{TGID: 2}))
	require.NoError(t, p.Forget(record.ProcessID{TGID: 3}))
	require.Error(t, p.SetLabelSources(record.ProcessID{TGID: 4}, make([]record.LabelSource, 2)))
	require.Zero(t, p.labelled())
}
