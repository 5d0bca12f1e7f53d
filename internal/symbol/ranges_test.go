package symbol

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func entriesOf(functions ...function) *entries {
	var e entries
	for _, f := range functions {
		e.add(f.start, f.size, []byte(f.name), 1<<30)
	}
	return &e
}

// Of overlapping functions the later one counts, whatever came in the same file or
// with a later reading: compared with an array of addresses.
func TestRanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		const addresses = 64
		var want [addresses]string
		r := &ranges{}
		for range 4 {
			var added []function
			for range random.IntN(8) {
				f := function{random.Uint64N(addresses), 1 + random.Uint64N(12), fmt.Sprint("f", random.IntN(1000))}
				added = append(added, f)
				for a := f.start; a < min(f.start+f.size, addresses); a++ {
					want[a] = f.name
				}
			}
			var complete bool
			r, complete = r.merge(entriesOf(added...), 1<<20)
			require.True(t, complete)
			for a := range want {
				got := ""
				if i := r.find(uint64(a)); i >= 0 {
					got = string(r.nameOf(i))
				}
				require.Equal(t, want[a], got, "%d", a)
			}
			for i := 1; i < len(r.list); i++ {
				require.LessOrEqual(t, r.list[i-1].start+uint64(r.list[i-1].size), r.list[i].start)
			}
		}
	}
}

func TestRangesBounded(t *testing.T) {
	var added []function
	for i := range uint64(1000) {
		added = append(added, function{i * 16, 16, fmt.Sprint("function", i)})
	}
	r, complete := (&ranges{}).merge(entriesOf(added...), 10_000)
	require.False(t, complete)
	require.LessOrEqual(t, r.bytes(), 10_000)
	require.Greater(t, r.bytes(), 9_900)
	require.Equal(t, "function0", string(r.nameOf(r.find(5))))
	// At the end of all addresses.
	r, complete = (&ranges{}).merge(entriesOf(function{math.MaxUint64 - 15, 15, "last"}, function{0, math.MaxUint32, "first"}), 1<<20)
	require.True(t, complete)
	require.Equal(t, "last", string(r.nameOf(r.find(math.MaxUint64-1))))
	require.Equal(t, -1, r.find(math.MaxUint64))
	require.Equal(t, "first", string(r.nameOf(r.find(math.MaxUint32-1))))
}

// A name that is cut into pieces is kept once, also over many readings.
func TestRangesShareNames(t *testing.T) {
	r, _ := (&ranges{}).merge(entriesOf(function{0, 1 << 20, "background"}), 1<<20)
	for i := range uint64(50) {
		r, _ = r.merge(entriesOf(function{i * 100, 10, "x"}), 1<<20)
	}
	require.Len(t, r.list, 100)
	require.Less(t, len(r.names), 11+2*50+1)
}
