package symbol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// named makes a cache that knows a file with so many C++ functions, each 16 bytes long.
func named(opts CacheOptions, names int, name func(i int) string) *Cache[int] {
	c := NewCache[int](opts)
	var list []function
	for i := range names {
		list = append(list, function{uint64(i) * 16, 16, name(i)})
	}
	key := cacheKey[int]{file: 1}
	e := &cached[int]{key: key, done: make(chan struct{}), known: &functions{table: tableOf(list...)}}
	close(e.done)
	c.byKey[key] = c.order.PushFront(e)
	return c
}

// Demangling takes a bounded time of a batch, and one user half of it; a part is left for users who
// have had little. What is left stays mangled until the next batch, and is counted.
func TestNamingBounded(t *testing.T) {
	const most = int(maxNaming / time.Millisecond)
	cpu, charged := time.Duration(0), time.Duration(0)
	c := named(CacheOptions{
		threadTime: func() time.Duration { cpu += time.Millisecond; return cpu },
		Work: func(_ uint32, do func()) {
			before := cpu
			do()
			charged += cpu - before - time.Millisecond // the clock is read twice
		},
	}, 3*most, func(i int) string { return "_Z1f" + strings.Repeat("i", i+1) })
	// demangled returns how many of the first names are readable for a user.
	demangled := func(uid uint32, names int) (n int) {
		for i := range names {
			fn, ok := lookup(c, 1, &opener{owner: Owner{UID: uid}}, uint64(i)*16)
			require.True(t, ok)
			if strings.HasPrefix(fn.Name, "f(") {
				n++
			} else {
				require.Equal(t, "_Z1f"+strings.Repeat("i", i+1), fn.Name)
			}
		}
		return n
	}
	require.Equal(t, most/2, demangled(1, most))
	require.EqualValues(t, most/2, c.Stats().TimedOut)
	require.Equal(t, most/2+most/4, demangled(2, most/2+most/4), "of somebody else")
	const reserved, little = int(reservedNaming / time.Millisecond), int(littleNaming / time.Millisecond)
	require.Equal(t, most-reserved+little, demangled(3, 3*most), "of all")
	require.EqualValues(t, most/2+2*most+reserved-little, c.Stats().TimedOut)
	require.Equal(t, most-reserved+little, demangled(2, 3*most), "who had more")
	for uid := range uint32(reserved / little) {
		demangled(4+uid, 3*most)
	}
	require.Equal(t, most, demangled(3, 3*most))
	require.Equal(t, maxNaming, charged)
	c.CloseFiles()
	require.Equal(t, most+most/2, demangled(1, 3*most), "the next batch")
}

// A long name whose trials take long together stays mangled, though each of them is quick.
func TestNameOfManyTrials(t *testing.T) {
	var d demangler
	name := "_Z1f1a" + strings.Repeat("S_", 500)
	require.LessOrEqual(t, shortest(name, maxTrial), maxTrial)
	require.Equal(t, name, d.name(name))
	require.Equal(t, 1, d.costly)
}

// Names that are kept ready count for what they take, and have a bound.
func TestNamesKeptBounded(t *testing.T) {
	const names = 2000
	c := named(CacheOptions{threadTime: func() time.Duration { return 0 }}, names, func(i int) string {
		return fmt.Sprintf("_Z5f%04d", i) + strings.Repeat("x", cheapBytes-16)
	})
	e := c.order.Front().Value.(*cached[int])
	e.bytes = e.size()
	c.bytes = e.bytes
	before, most, dropped := c.Stats().Bytes, 0, false
	for i := range names {
		last := c.Stats().Bytes
		fn, ok := lookup(c, 1, &opener{}, uint64(i)*16)
		require.True(t, ok)
		require.Contains(t, fn.Name, "(long long, ")
		now := c.Stats().Bytes
		if now > last {
			require.GreaterOrEqual(t, now-last, len(fn.Name))
		}
		most, dropped = max(most, now-before), dropped || now <= last
		require.Equal(t, e.size(), now)
	}
	require.True(t, dropped)
	require.LessOrEqual(t, most, maxMemoBytes)
	require.Greater(t, most, maxMemoBytes/2)
}
