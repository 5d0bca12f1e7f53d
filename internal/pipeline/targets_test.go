//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// A process that could not be judged is left out: it may be one that is not wanted.
func TestOmission(t *testing.T) {
	some := []targets.Selector{{PID: 1}}
	for name, c := range map[string]struct {
		options TargetOptions
		omitted map[process.Verdict]bool
	}{
		"all":      {TargetOptions{}, map[process.Verdict]bool{}},
		"include":  {TargetOptions{Selection: targets.Selection{Include: some}}, map[process.Verdict]bool{process.VerdictUnknown: true, process.VerdictFiltered: true}},
		"labelled": {TargetOptions{LabelledOnly: true}, map[process.Verdict]bool{process.VerdictUnknown: true, process.VerdictFiltered: true}},
		"exclude":  {TargetOptions{Selection: targets.Selection{Exclude: some}}, map[process.Verdict]bool{process.VerdictUnknown: true, process.VerdictFiltered: true}},
	} {
		o := newTargetFilter(&c.options)
		for _, verdict := range []process.Verdict{process.VerdictUnknown, process.VerdictWanted, process.VerdictFiltered} {
			why, omitted := o.of(&process.Info{Verdict: verdict})
			require.Equal(t, c.omitted[verdict], omitted, "%s %d", name, verdict)
			if omitted && verdict == process.VerdictUnknown {
				require.Equal(t, FilterUnknownProcess, why)
			}
		}
	}
}
