// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// TestWidths: on a terminal no row is wider than that, as long as the numbers fit; elsewhere
// every name is whole.
func TestWidths(t *testing.T) {
	tenant, function := strings.Repeat("tenant", 20), strings.Repeat("function", 20)
	f := profiletest.New().Process(7, "writer")
	f.Sample(3, []string{function}, "tenant", tenant, "route", "/"+tenant)
	f.Sample(1, []string{"f"}, "tenant", "a", "route", "/")
	const file = "a-program-with-a-long-name-of-its-own"
	f.Dict.MappingTable().At(1).SetFilenameStrindex(f.Text("/bin/" + file))
	s := filled(f.Profiles, "tenant", "route")
	for _, columns := range []int{48, 60, 80, 120, 200} {
		out := shown(s, View{Rows: 20, Functions: 5, Columns: columns})
		_, rows, _ := strings.Cut(out, "\n") // the first line is a sentence
		widest := 0
		for line := range strings.Lines(rows) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		require.LessOrEqual(t, widest, columns, out)
		require.Greater(t, widest, columns*3/4, out)
		require.Contains(t, out, "75.0 %", "numbers stay")
		require.NotContains(t, out, tenant+" ", "cut")
	}
	for columns, ends := range map[int]string{45: "samples", 44: "share", 36: "share", 35: "CPU", 20: "CPU"} {
		out := shown(s, View{Rows: 20, Columns: columns})
		lines := strings.Split(out, "\n")
		require.True(t, strings.HasSuffix(lines[2], " "+ends), "%d columns, last numbers that have no room are left out whole:\n%s", columns, out)
		require.NotContains(t, strings.Join(lines[3:], "\n"), "s…")
	}
	out := shown(s, whole())
	for _, name := range []string{"  " + tenant + "  /" + tenant + " ", function + "  " + file + "\n", tenant + ", /" + tenant + "\n"} {
		require.Contains(t, out, name)
	}
	require.Contains(t, out, "\n  a ", "a long name moves only its own row")
	require.NotContains(t, out, strings.Repeat(" ", 80))
	require.NotContains(t, out, "\x1b")

	for _, tc := range []struct{ columns, longest, names, files int }{
		{30, 100, 18, 0}, // no room for files
		{50, 100, 28, 8},
		{50, 20, 20, 16}, // what names do not need
		{50, 3, 16, 20},
		{100, 100, 66, 20},
	} {
		names, files := functionColumns(tc.columns, tc.longest)
		require.Equal(t, []int{tc.names, tc.files}, []int{names, files}, "%+v", tc)
	}
}
