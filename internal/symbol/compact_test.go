package symbol

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Compact entries have the functions and the names of the entries, however many there are and however
// long their names.
func TestCompact(t *testing.T) {
	for name, lengths := range map[string][]int{
		"none":            nil,
		"one":             {5},
		"no name":         {0},
		"a block":         lengthsOf(maxBlockFunctions, 10),
		"one more":        lengthsOf(maxBlockFunctions+1, 10),
		"many":            lengthsOf(20*maxBlockFunctions+7, 10),
		"long names":      lengthsOf(50, maxBlockBytes/3),
		"longer names":    lengthsOf(5, 2*maxBlockBytes),
		"nothing and all": {0, maxBlockBytes, 0, 0, maxBlockBytes - 1, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var all entries
			want := map[uint64]string{}
			for i, n := range lengths {
				start := uint64(len(lengths)-i) * 16
				text := strings.Repeat(string(rune('a'+i%26)), n)
				require.True(t, all.add(start, uint64(i), []byte(text), 1<<30))
				want[start] = text
			}
			c := &Table{} // while it is in use, so is the memory
			c.compact = compactAll(c, &all)
			defer runtime.KeepAlive(c)
			require.Equal(t, len(lengths), c.Len())
			for i := range lengths {
				start := c.start(i)
				require.Equal(t, want[start], string(c.nameOf(i)))
				require.EqualValues(t, len(lengths)-int(start/16), c.sizes[i])
				require.Equal(t, i, c.before(start))
				require.Equal(t, i, c.before(start+15))
				require.Equal(t, i-1, c.before(start-1))
			}
			for i, b := range c.blocks {
				end := len(lengths)
				if i+1 < len(c.blocks) {
					end = int(c.blocks[i+1].first)
				}
				require.LessOrEqual(t, end-int(b.first), maxBlockFunctions)
				before := 0 // the last name
				for f := int(b.first); f < end-1; f++ {
					before += len(c.nameOf(f)) + 1
				}
				require.Less(t, before, maxBlockBytes, "what is decompressed for one name is bounded")
			}
		})
	}
}

// Starts take half as much where they lie within 4 GiB.
func TestCompactStarts(t *testing.T) {
	for reach, startBytes := range map[uint64]int{0: 4, math.MaxUint32: 4, math.MaxUint32 + 1: 8, math.MaxUint64 - 5: 8} {
		table := tableOf(function{5, 1, "a"}, function{5 + reach, 1, "b"})
		rest := 4*table.Len() + nameBlockBytes + len(table.names)
		require.Equal(t, startBytes*table.Len()+rest, table.Bytes(), "%#x", reach)
		for i := range table.Len() {
			require.Equal(t, 5+uint64(i)*reach, table.start(i))
		}
		name, ok := table.Lookup(5 + reach)
		require.True(t, ok)
		require.Equal(t, []string{"a", "b"}[table.Len()-1], name)
		_, ok = table.Lookup(4)
		require.False(t, ok)
	}
}

func lengthsOf(n, length int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = length
	}
	return s
}

// FuzzCompact has any names, which end with newlines.
func FuzzCompact(f *testing.F) {
	f.Add([]byte("main\n_ZN3foo3barEv\n_ZN3foo3bazEv\n\n"))
	f.Add(bytes.Repeat([]byte("name\n"), 2*maxBlockFunctions))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.ReplaceAll(b, []byte{0}, []byte{'0'})
		names := bytes.Split(b, []byte("\n"))
		var all entries
		for i, name := range names {
			require.True(t, all.add(uint64(i), 1, name, 1<<30))
		}
		c := &Table{}
		c.compact = compactAll(c, &all)
		defer runtime.KeepAlive(c)
		for i, name := range names {
			require.Equal(t, string(name), string(c.nameOf(i)))
		}
	})
}

// Of functions that take too much, those with the lowest addresses are kept.
func TestCompactUpTo(t *testing.T) {
	random := rand.NewChaCha8([32]byte{})
	for _, gap := range []uint64{16, 1 << 24} { // the latter with starts that lie far apart
		fill := func() (all entries) {
			for i := range uint64(1000) {
				name := make([]byte, 20)
				_, _ = random.Read(name)
				require.True(t, all.add(i*gap, 8, bytes.ReplaceAll(name, []byte{0}, []byte{1}), 1<<30))
			}
			return all
		}
		all := fill()
		c := &Table{}
		c.compact = compactAll(c, &all)
		most := c.compact.bytes()
		for limit := range most + 2 {
			if limit%500 != 0 && limit < most-1 {
				continue
			}
			all := fill()
			c := &Table{}
			var whole bool
			c.compact, whole = compactUpTo(c, &all, limit)
			require.LessOrEqual(t, c.compact.bytes(), limit)
			require.Equal(t, c.Len() == 1000, whole)
			require.Greater(t, (c.Len()+maxBlockFunctions)*most, 1000*(limit-most/100), "no more is left out than has to be")
			for i := range c.Len() {
				require.Equal(t, uint64(i)*gap, c.start(i))
				require.Len(t, c.nameOf(i), 20)
			}
		}
	}
}
