//go:build linux && (amd64 || arm64)

package writercheck

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
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
