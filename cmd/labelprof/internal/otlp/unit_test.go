// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// All values of one sample together are bounded as each is, so that no sum that matters overflows.
func TestSampleIsBounded(t *testing.T) {
	u := unit{kind: sample.OffCPU}
	var s sample.Sample
	require.True(t, u.add(&s, 1, sample.MaxNs-1))
	require.True(t, u.add(&s, 2, 1))
	require.False(t, u.add(&s, 3, 1))
	require.EqualValues(t, sample.MaxNs, s.Ns)
	require.Len(t, s.Points, 2)
}
