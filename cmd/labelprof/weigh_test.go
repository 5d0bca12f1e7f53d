// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// All values of one sample together are bounded as each is, so that no sum that matters overflows.
func TestSampleIsBounded(t *testing.T) {
	u := unit{kind: samplestore.OffCPU}
	var s sample
	require.True(t, s.point(1, maxSampleNs-1, u))
	require.True(t, s.point(2, 1, u))
	require.False(t, s.point(3, 1, u))
	require.EqualValues(t, maxSampleNs, s.cpuNs)
	require.Len(t, s.points, 2)
}
