package symbol

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What gives way is what was not used for the longest time, not what was just read.
func TestCacheKeepsLatest(t *testing.T) {
	o := &opener{path: build(t)}
	vaddr := vaddrOf(t, o.path, "visible")
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	read := func(key int) bool {
		before := o.opens.Load()
		_, ok := lookup(c, key, o, vaddr)
		require.True(t, ok)
		return o.opens.Load() > before
	}
	require.True(t, read(1))
	c.opts.MaxBytes = 2 * c.Stats().Bytes
	require.True(t, read(2))
	require.False(t, read(1))
	require.True(t, read(3), "there is room for two")
	require.False(t, read(3))
	require.False(t, read(1))
	require.True(t, read(2))
}

// What is left of a line that is too long is no line of its own, though it looks like one.
func TestPerfMapRestOfALine(t *testing.T) {
	g := &growing{now: time.Now()}
	g.write(strings.Repeat("x", maxMapLine) + "100 10 rest\n200 10 b\n")
	m, err := newPerfMap(maxMapBytes).update(g.open(), g.now, roomFor())
	require.NoError(t, err)
	require.Equal(t, []string{"", "b"}, []string{nameAt(m, 0x100), nameAt(m, 0x200)})
	require.False(t, m.complete)
}

// A module that is where another one was has names of its own.
func TestKernelModuleReplaced(t *testing.T) {
	const addr = 0xffffffffd0000004
	k, write, err := kernelOf(t, kallsyms+"ffffffffd0000000 t early\t[first]\n")
	require.NoError(t, err)
	now := k.readAt
	k.now = func() time.Time { return now }
	fn, module, ok := k.Lookup(addr)
	require.True(t, ok)
	require.Equal(t, [2]string{"early", "first"}, [2]string{fn, module})
	write(kallsyms + "ffffffffd0000000 t late\t[second]\n")
	_, _, ok = k.Lookup(1)
	require.False(t, ok, "so that symbols are read again")
	now = now.Add(2 * refreshGap)
	require.NoError(t, k.Refresh())
	fn, module, ok = k.Lookup(addr)
	require.True(t, ok)
	require.Equal(t, [2]string{"late", "second"}, [2]string{fn, module})
}
