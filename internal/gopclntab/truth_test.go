package gopclntab

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// find returns the table of a file, and a reader of it.
func find(t testing.TB, data []byte) (Table, *Reader) {
	t.Helper()
	f, err := elffile.New(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	table, err := Find(f)
	require.NoError(t, err)
	return table, NewReader(table, bytes.NewReader(data))
}

// truth is what a program's own runtime says of [start, limit).
type truth struct {
	start, limit uint64
	delta        int
	frames       string
}

// run runs a program of testdata/gopclntab. Its runtime takes the name at offset 0 for
// none; r knows it.
func run(t testing.TB, path string, r *Reader) []truth {
	t.Helper()
	out, err := exec.Command(path).Output()
	require.NoError(t, err)
	var all []truth
	first, err := r.name(0)
	require.NoError(t, err)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		head, frames, _ := strings.Cut(lines.Text(), "\t")
		offset, delta, ok := strings.Cut(head, " ")
		require.True(t, ok)
		start, err := strconv.ParseUint(offset, 16, 64)
		require.NoError(t, err)
		d, err := strconv.Atoi(delta)
		require.NoError(t, err)
		start += r.t.text
		if len(all) > 0 {
			all[len(all)-1].limit = start
		}
		parts := strings.Split(frames, "\t")
		for i := range parts {
			if strings.HasPrefix(parts[i], "\x00") {
				parts[i] = first + parts[i]
			}
		}
		all = append(all, truth{start: start, delta: d, frames: strings.Join(parts, "\t")})
	}
	return all[:len(all)-1] // the end of the last one is not known
}

func text(frames []Frame) string {
	var parts []string
	for _, f := range frames {
		parts = append(parts, fmt.Sprintf("%s\x00%s\x00%d\x00%d", f.Function, f.File, f.Line, f.StartLine))
	}
	return strings.Join(parts, "\t")
}

// short is the share of what is checked with -short.
const short = 16

// Of every linkage and release: each address means what the program's own runtime
// says. What it says is constant between two lines, so that both ends of each suffice.
func TestTruth(t *testing.T) {
	ran := 0
	for _, path := range testutil.BuildGoTables(t) {
		name := filepath.Base(path)
		if !strings.HasPrefix(name, "tables-") {
			continue
		}
		ran++
		if testing.Short() && strings.Contains(name, "go1.") && !strings.Contains(name, "go1.22") {
			continue
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		_, r := find(t, data)
		ranges, inlined, deltas := 0, 0, deltasOf(t, r)
		for i, want := range run(t, path, r) {
			ranges++
			if testing.Short() && i%short != 0 {
				continue
			}
			for _, pc := range []uint64{want.start, want.limit - 1} {
				frames, err := r.Frames(nil, pc)
				require.NoError(t, err)
				if got := text(frames); got != want.frames {
					t.Fatalf("%s, %#x:\n%q\nwant\n%q", name, pc, got, want.frames)
				}
				if len(frames) > 1 {
					inlined++
				}
				if got := deltas.at(pc); want.delta >= 0 && got != want.delta {
					t.Fatalf("%s, %#x: stack delta %d, want %d", name, pc, got, want.delta)
				}
			}
		}
		require.Greater(t, ranges, 30_000, name)
		require.Greater(t, inlined, ranges/(4*short), name)
	}
	require.GreaterOrEqual(t, ran, testutil.Size(28, 12, 12))
}

// deltas are stack deltas by the first address that they hold for.
type deltas struct {
	starts []uint64
	values []int
}

func deltasOf(t testing.TB, r *Reader) *deltas {
	d := &deltas{}
	err := r.Functions(func(f Func) bool {
		require.NoError(t, r.StackDeltas(&f, func(start uint64, delta int32) bool {
			d.starts, d.values = append(d.starts, start), append(d.values, int(delta))
			return true
		}))
		return true
	})
	require.NoError(t, err)
	return d
}

func (d *deltas) at(pc uint64) int {
	low, high := 0, len(d.starts)
	for low < high {
		if m := (low + high) / 2; d.starts[m] <= pc {
			low = m + 1
		} else {
			high = m
		}
	}
	return d.values[low-1]
}
