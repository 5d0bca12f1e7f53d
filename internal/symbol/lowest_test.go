package symbol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// Of too many functions, those with the lowest addresses are kept, in whatever order they come.
func TestLowest(t *testing.T) {
	const functions, most = 20_000, 100_000
	for name, order := range map[string][]int{
		"ascending": ascending(functions), "any": rand.New(rand.NewPCG(1, 2)).Perm(functions), "again": append(ascending(functions), ascending(functions)...),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLowest(most)
			for _, i := range order {
				require.True(t, l.add(&elffile.Function{Name: fmt.Appendf(nil, "function_%d", i), Value: uint64(i), Size: 1}))
				require.LessOrEqual(t, l.bytes(), most)
			}
			l.tidy()
			require.True(t, l.truncated)
			require.Greater(t, l.bytes(), most*(cutShare-2)/cutShare)
			require.EqualValues(t, len(l.list), l.limit)
			for i := range l.list {
				require.EqualValues(t, i, l.list[i].start)
				require.Equal(t, fmt.Sprintf("function_%d", i), string(l.nameOf(i)))
			}
		})
	}
}

func ascending(n int) (order []int) {
	for i := range n {
		order = append(order, i)
	}
	return order
}

// A function that comes twice makes no other one give way.
func TestLowestTwice(t *testing.T) {
	l := newLowest(10_000)
	for range 5 {
		for i := range uint64(300) {
			require.True(t, l.add(&elffile.Function{Name: []byte("function"), Value: i, Size: 1}))
		}
	}
	l.tidy()
	require.False(t, l.truncated)
	require.Len(t, l.list, 300)
}

// Functions that make room for each other again and again do so a number of times, and a name that hardly fits
// is left out.
func TestLowestHostile(t *testing.T) {
	l := newLowest(1000)
	more := true
	for i := uint64(100_000); i > 0 && more; i-- {
		more = l.add(&elffile.Function{Name: []byte("function"), Value: i, Size: 1})
	}
	require.False(t, more)
	require.Equal(t, maxCuts, l.cuts)
	require.True(t, l.truncated)

	l = newLowest(1000)
	for i, size := range []int{10, 1000 / cutShare, 10} {
		require.True(t, l.add(&elffile.Function{Name: []byte(strings.Repeat("x", size)), Value: uint64(i), Size: 1}))
	}
	require.Len(t, l.list, 2)
	require.True(t, l.truncated)
}

// Functions that are exported come last in a file's symbol table, and have their names nevertheless.
func TestTruncatedLocals(t *testing.T) {
	var source strings.Builder
	source.WriteString(".text\n.globl exported\n.type exported,%function\nexported: .byte 0\n.size exported,1\n")
	for i := range 1000 {
		fmt.Fprintf(&source, ".type local_%d,%%function\nlocal_%d: .byte 0\n.size local_%d,1\n", i, i, i)
	}
	dir := t.TempDir()
	from, out := filepath.Join(dir, "l.s"), filepath.Join(dir, "l.so")
	require.NoError(t, os.WriteFile(from, []byte(source.String()), 0o644))
	testutil.Compile(t, out, "gcc", "-shared", "-nostdlib", from)
	c := NewCache[int](CacheOptions{Wait: time.Minute, MaxTableBytes: 10_000})
	o, at := &opener{path: out}, vaddrOf(t, out, "exported")
	for add, want := range []string{"exported", "local_0", "local_1"} {
		fn, _ := lookup(c, 1, o, at+uint64(add))
		require.Equal(t, want, fn.Name)
	}
	_, ok := lookup(c, 1, o, at+1000)
	require.False(t, ok)
	require.EqualValues(t, 1, c.Stats().Truncated)
}

// BenchmarkLowest has eight times the functions that there is room for.
func BenchmarkLowest(b *testing.B) {
	const most = 24 << 20
	random := rand.New(rand.NewPCG(1, 2))
	name := []byte(strings.Repeat("x", 80))
	for b.Loop() {
		l := newLowest(most)
		discard := l.begin(most)
		for range 8 * most / (entryBytes + len(name) + 1) {
			l.add(&elffile.Function{Name: name, Value: random.Uint64(), Size: 1})
		}
		discard()
	}
}
