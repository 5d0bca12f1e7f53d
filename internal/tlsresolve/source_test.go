package tlsresolve

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A label source leads to the location that it was made of.
func TestLocationOfSource(t *testing.T) {
	at := Location{Kind: record.TLSDTVGlibc, Offset: -8, Module: 3, Generation: 7}
	source := at.Source(record.ABIV1)
	require.Equal(t, record.ABIV1, source.ABI)
	require.Equal(t, at, LocationOf(&source))
}
