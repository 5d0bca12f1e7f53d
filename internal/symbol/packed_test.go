package symbol

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unpacked yields all functions, each by itself.
func unpacked(p *packed) iter.Seq2[int, packedFunction] {
	return func(yield func(int, packedFunction) bool) {
		for i, block := 0, 0; block < len(p.heads); i++ {
			d, _ := p.block(block, nil)
			for range i%packedBlock + 1 {
				d.next()
			}
			if i%packedBlock == packedBlock-1 || len(d.text) == 0 {
				block++
			}
			if !yield(i, d.function()) {
				return
			}
		}
	}
}

// entriesOfLines adds lines as functions that begin at each second address.
func entriesOfLines(lines string) *entries {
	e := &entries{}
	for i, name := range strings.Split(lines, "\n") {
		e.add(uint64(len(e.list))<<1, uint64(i%3), []byte(strings.ReplaceAll(name, "\x00", "")), 1<<30)
	}
	return e
}

// packedOf returns what owns its memory.
func packedOf(e *entries) *packed {
	k := &kernelSymbols{}
	k.packed = packEntries(k, e)
	return &k.packed
}

// requirePacked holds what was packed against what it was made of.
func requirePacked(t *testing.T, e *entries) {
	t.Helper()
	p := packedOf(e)
	require.LessOrEqual(t, len(p.data), e.packedBytes())
	n := 0
	for i, f := range unpacked(p) {
		n++
		want := e.list[i]
		require.Equal(t, packedFunction{want.start, want.size, e.nameOf(i)}, packedFunction{f.start, f.size, append([]byte{}, f.name...)})
		for _, addr := range []uint64{want.start, want.start + 1} {
			f, _, ok := p.before(addr, nil)
			require.True(t, ok)
			require.Equal(t, want.start, f.start)
			require.Equal(t, string(e.nameOf(i)), string(f.name))
		}
	}
	require.Equal(t, len(e.list), n)
	_, _, ok := p.before(0, nil)
	require.Equal(t, len(e.list) > 0 && e.list[0].start == 0, ok)
}

func TestPacked(t *testing.T) {
	requirePacked(t, &entries{})
	requirePacked(t, entriesOfLines("only"))
	requirePacked(t, entriesOfLines("__pfx_\n\n__pfx_a\na\n__pfx___pfx_b\n__pfx_b\nb\n__pfx_c\nd"))
	var lines []string
	for i := range 10 * packedBlock {
		name := fmt.Sprintf("ext%d_%d", i%2, i)
		lines = append(lines, paddingPrefix+name, name)
	}
	requirePacked(t, entriesOfLines(strings.Join(lines, "\n")))
	requirePacked(t, entriesOfLines(strings.Join(lines[1:], "\n"))) // padding at the ends of blocks
}

func FuzzPacked(f *testing.F) {
	f.Add("a\nab\n__pfx_abc\nabc")
	f.Fuzz(func(t *testing.T, lines string) { requirePacked(t, entriesOfLines(lines)) })
}

// The functions of this kernel are all there, in less memory: on x86-64, a sixth.
func TestPackedKernel(t *testing.T) {
	var e entries
	for line := range strings.Lines(mustRead(t, "/proc/kallsyms")) {
		if words := strings.Fields(line); strings.Contains("tTwW", words[1]) {
			e.add(uint64(len(e.list))<<4, 0, []byte(words[2]), 1<<30)
		}
	}
	p := packedOf(&e)
	for i, f := range unpacked(p) {
		require.Equal(t, string(e.nameOf(i)), string(f.name))
	}
	t.Logf("%d functions, %d KiB, before %d", len(e.list), p.bytes()>>10, e.bytes()>>10)
	require.Less(t, p.bytes(), e.bytes()/2)
}
