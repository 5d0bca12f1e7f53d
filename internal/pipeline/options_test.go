package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A number that is 0 is that of the defaults; what may be 0 stays so.
func TestOptionsComplete(t *testing.T) {
	want := Defaults()
	want.OffCPU.Minimum = 0
	want.Labels.Prefix = ""
	want.Attributes = AttributeOptions{}
	var o Options
	o.complete()
	require.NotNil(t, o.Logger)
	o.Report(ConcernProfiles, nil)
	o.Logger, o.Report = nil, nil
	require.Equal(t, want, o)

	o = Defaults()
	o.SamplesPerSecond, o.Ring.UserShare, o.Limits.BackgroundCPU, o.Labels.Budgets.Keys = 1, 1, 2, 7
	want = o
	o.complete()
	o.Logger, o.Report = nil, nil
	require.Equal(t, want, o)
}
