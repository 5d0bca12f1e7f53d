//go:build linux

package labelsource

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A process has so many sources as the programs read of a thread, each once.
func TestAddSource(t *testing.T) {
	of := func(i int) record.LabelSource {
		return record.LabelSource{Offset: int64(i)}
	}
	var sources []record.LabelSource
	for i := range record.MaxLabelSources {
		var err error
		sources, err = addSource(sources, of(i))
		require.NoError(t, err)
		sources, err = addSource(sources, of(i))
		require.ErrorIs(t, err, errDuplicate)
	}
	sources, err := addSource(sources, of(record.MaxLabelSources))
	require.ErrorIs(t, err, errOverLimit)
	require.Len(t, sources, record.MaxLabelSources)
	_, err = addSource(sources, of(0))
	require.ErrorIs(t, err, errDuplicate, "rather than over the limit")
}
