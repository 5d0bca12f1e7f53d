//go:build linux && (amd64 || arm64)

package writercheck

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// interp is the dynamic loader that a program asks for.
func interp(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	stat, err := f.Stat()
	require.NoError(t, err)
	e, err := elffile.New(f, stat.Size())
	require.NoError(t, err)
	require.NotEmpty(t, e.Interp())
	return e.Interp()
}

// A program that its loader was started with is judged as any other one.
func TestProgramOfLoader(t *testing.T) {
	writer := build{abi: 2}.writer(t)
	ids, r := broken(t, started(t, interp(t, writer), writer, ruleIDs))
	require.Equal(t, []string{ThreadContext.rule(ruleIDs)}, ids)
	require.Equal(t, Broken, r.Verdict())

	// Nor have its libraries been loaded later.
	writer = build{abi: 1, library: "libcustomlabels.so"}.writer(t)
	ids, r = publishing(t, started(t, interp(t, writer), writer))
	require.Empty(t, ids)
	require.Equal(t, Holds, r.Verdict())
	require.Contains(t, r.Formats, V1)
}

// What is said of labels that are read counts, whatever their file is.
func TestSourceOfUnreadFile(t *testing.T) {
	w := &watch{t: newTally()}
	w.judgeSource(&labelsource.Status{ABI: record.ABIThreadContext, State: labelsource.NotProgram})
	require.Empty(t, w.formats)
	w.judgeSource(&labelsource.Status{ABI: record.ABIThreadContext, State: labelsource.Active})
	require.Equal(t, []Format{ThreadContext}, w.formats)
}

// A library of /etc/ld.so.preload is there from the start, as the process has that file.
func TestPreloadedByFile(t *testing.T) {
	testutil.RequireRoot(t)
	writer := build{abi: 1, library: "libcustomlabels.so", late: true}.writer(t)
	library := filepath.Join(filepath.Dir(writer), "libcustomlabels.so")
	const script = `mount -t tmpfs none /etc; printf '# labels\n%s # of all\n' "$1" >/etc/ld.so.preload; exec "$0"`
	ids, r := publishing(t, started(t, "unshare", "--mount", "sh", "-ec", script, writer, library))
	require.Empty(t, ids)
	require.Equal(t, Holds, r.Verdict())
	require.Contains(t, r.Formats, V1)
}

func TestPreloadsOfFile(t *testing.T) {
	const text = "/lib/a.so:b.so\t/c.so # d.so\n\n#e.so\n  /f.so\n/g.so"
	require.Equal(t, []string{"/lib/a.so", "b.so", "/c.so", "/f.so", "/g.so"}, preloadsOfFile(text))
	require.Empty(t, preloadsOfFile("# nothing"))
}

func TestFormatsOf(t *testing.T) {
	source := func(abi record.ABI, state labelsource.State) labelsource.Status {
		return labelsource.Status{ABI: abi, State: state}
	}
	require.Empty(t, FormatsOf(&process.Info{Sources: []labelsource.Status{source(record.ABIV1, labelsource.NotProgram)}}))
	require.Equal(t, []Format{ProcessContext, V1, Go}, FormatsOf(&process.Info{ContextErr: "it is cut", Sources: []labelsource.Status{
		source(record.ABIV1, labelsource.NoRelocation), source(record.ABIV1, labelsource.Active), source(record.ABIGo, labelsource.Active),
	}}))
}
