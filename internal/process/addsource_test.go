//go:build linux

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// A process has so many sources as the programs read of a thread, each once.
func TestAddSource(t *testing.T) {
	of := func(i int) LabelSource { return LabelSource{Location: tlsresolve.Location{Offset: int64(i)}} }
	var sources []LabelSource
	for i := range maxSources {
		var err error
		sources, err = addSource(sources, of(i))
		require.NoError(t, err)
		sources, err = addSource(sources, of(i))
		require.ErrorIs(t, err, errDuplicate)
	}
	sources, err := addSource(sources, of(maxSources))
	require.ErrorIs(t, err, errOverLimit)
	require.Len(t, sources, maxSources)
	_, err = addSource(sources, of(0))
	require.ErrorIs(t, err, errDuplicate, "rather than over the limit")
}
