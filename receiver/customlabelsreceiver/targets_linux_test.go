//go:build amd64 || arm64

package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// A process that could not be judged is left out: it may be one that is not wanted.
func TestOmission(t *testing.T) {
	some := []TargetSelector{{PID: 1}}
	for name, c := range map[string]struct {
		config  TargetsConfig
		omitted map[process.Verdict]bool
	}{
		"all":      {TargetsConfig{}, map[process.Verdict]bool{}},
		"include":  {TargetsConfig{Include: some}, map[process.Verdict]bool{process.VerdictUnknown: true, process.VerdictFiltered: true}},
		"labelled": {TargetsConfig{LabelledOnly: true}, map[process.Verdict]bool{process.VerdictUnknown: true, process.VerdictFiltered: true}},
		"exclude":  {TargetsConfig{Exclude: some}, map[process.Verdict]bool{process.VerdictUnknown: true, process.VerdictFiltered: true}},
	} {
		o := newOmission(&c.config)
		for _, verdict := range []process.Verdict{process.VerdictUnknown, process.VerdictWanted, process.VerdictFiltered} {
			why, omitted := o.of(&process.Info{Verdict: verdict})
			require.Equal(t, c.omitted[verdict], omitted, "%s %d", name, verdict)
			if omitted && verdict == process.VerdictUnknown {
				require.Equal(t, filterUnknownProcess, why)
			}
		}
	}
}
