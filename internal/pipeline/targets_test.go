//go:build linux && (amd64 || arm64)

package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
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

// Who leaves processes out by a path that the collector does not see is told.
func TestCgroupWarning(t *testing.T) {
	selection := targets.Selection{
		Include: []targets.Selector{{Cgroup: "**/app.service/**"}},
		Exclude: []targets.Selector{{Cgroup: "/system.slice/**"}, {PID: 1}, {CgroupID: 77}},
	}
	warned := func(first string, s *targets.Selection) []any {
		root := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(root, "1"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, "1", "cgroup"), []byte(first), 0o600))
		core, said := observer.New(zap.WarnLevel)
		warnOfCgroups(zap.New(core), newSelectorMatches(s), procfs.FS{Root: root})
		if said.Len() == 0 {
			return nil
		}
		require.Equal(t, 1, said.Len())
		return said.All()[0].ContextMap()["selectors"].([]any)
	}
	require.Equal(t, []any{`exclude[0]: cgroup: "/system.slice/**"`, "exclude[2]: cgroup_id: 77"}, warned("0::/../../init.scope\n", &selection))
	require.Nil(t, warned("0::/init.scope\n", &selection))
	require.Nil(t, warned("0::/../../init.scope\n", &targets.Selection{Include: selection.Include}))
	require.Equal(t, []any{`exclude[0]: cgroup: "**/system.slice/**"`},
		warned("0::/../../init.scope\n", &targets.Selection{Exclude: []targets.Selector{{Cgroup: "**/system.slice/**"}}}))
	require.Nil(t, warned("0::/init.scope\n", &targets.Selection{Exclude: []targets.Selector{{Cgroup: "**/system.slice/**"}}}))
	require.Equal(t, []any{`include[0]: cgroup: "**/app.service/**"`, `exclude[0]: cgroup: "/system.slice/**"`, "exclude[2]: cgroup_id: 77"},
		warned("1:name=systemd:/init.scope\n0::/init.scope\n", &selection))
	require.Nil(t, warned("1:name=systemd:/init.scope\n0::/init.scope\n", &targets.Selection{Exclude: []targets.Selector{{PID: 1}}}))
}
