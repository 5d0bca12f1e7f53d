package gopclntab

import (
	"debug/dwarf"
	"debug/elf"
	"debug/gosym"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// What cannot run here: functions and lines are what debug/gosym says, inlined calls
// what the debug information says.
func TestCross(t *testing.T) {
	ran := 0
	for _, path := range testutil.BuildGoTables(t) {
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "cross-") {
			continue
		}
		ran++
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		table, r := find(t, data)
		e, err := elf.Open(path)
		require.NoError(t, err)
		defer e.Close()
		section, err := e.Section(".gopclntab").Data()
		require.NoError(t, err)
		reference, err := gosym.NewTable(nil, gosym.NewLineTable(section, table.text))
		require.NoError(t, err)
		var calls []inlinedRange
		if !strings.HasSuffix(name, "stripped") {
			calls = inlinedRanges(t, e)
			require.NotEmpty(t, calls)
		}
		step := uint64(4)
		if testing.Short() {
			step *= short
		}
		inlined := 0
		for pc := table.Start; pc < table.Limit; pc += step {
			frames, err := r.Frames(nil, pc)
			require.NoError(t, err)
			file, line, fn := reference.PCToLine(pc)
			require.NotNil(t, fn)
			outer := frames[len(frames)-1]
			require.Equal(t, fn.Name, outer.Function, "%s %#x", name, pc)
			if file != "" && !outer.Foreign { // the linker's marks have no line
				require.Equal(t, file, frames[0].File, "%s %#x", name, pc)
				require.Equal(t, line, frames[0].Line, "%s %#x", name, pc)
			}
			if calls == nil {
				continue
			}
			var want []string
			for len(calls) > 0 && calls[0].limit <= pc {
				calls = calls[1:]
			}
			for _, c := range calls {
				if c.start > pc {
					break
				}
				if pc < c.limit {
					want = append(want, c.name)
				}
			}
			var got []string
			for _, f := range frames[:len(frames)-1] {
				got = append(got, f.Function)
			}
			slices.Sort(want)
			slices.Sort(got)
			require.Equal(t, want, got, "%s %#x", name, pc)
			inlined += len(got)
		}
		if !strings.HasSuffix(name, "stripped") {
			require.Greater(t, inlined, 1000)
		}
	}
	require.Equal(t, 8, ran)
}

// inlinedRange is a range of an inlined call.
type inlinedRange struct {
	start, limit uint64
	name         string
}

func inlinedRanges(t *testing.T, e *elf.File) []inlinedRange {
	d, err := e.DWARF()
	require.NoError(t, err)
	names := map[dwarf.Offset]string{}
	var calls []inlinedRange
	var origins []dwarf.Offset
	for r := d.Reader(); ; {
		entry, err := r.Next()
		require.NoError(t, err)
		if entry == nil {
			break
		}
		switch entry.Tag {
		case dwarf.TagSubprogram:
			if name, ok := entry.Val(dwarf.AttrName).(string); ok {
				names[entry.Offset] = name
			}
		case dwarf.TagInlinedSubroutine:
			ranges, err := d.Ranges(entry)
			require.NoError(t, err)
			for _, x := range ranges {
				calls = append(calls, inlinedRange{start: x[0], limit: x[1]})
				origins = append(origins, entry.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset))
			}
		}
	}
	for i := range calls {
		calls[i].name = names[origins[i]]
	}
	slices.SortFunc(calls, func(a, b inlinedRange) int { return int(int64(a.start) - int64(b.start)) })
	return calls
}
