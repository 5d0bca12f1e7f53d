package cpython

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// oneDown is a table of lines: 1 unit, one line down.
var oneDown = []byte{0x80 | locationOneLine<<3 + 8, 0, 0}

// Whatever a living object may have for a count of references, it has its name; no freed one has.
func TestReferences(t *testing.T) {
	const nextFreeBlock = 0x7f3a12345680
	for what, tc := range map[string]struct {
		word uint64
		gone bool
	}{
		"one":                      {word: 1},
		"immortal in 3.11":         {word: 999999999},
		"immortal in 3.12":         {word: 1<<32 - 1},
		"immortal, and carried":    {word: 1 << 32},
		"immortal, static in 3.14": {word: 3<<30 | 5<<48},
		"none":                     {gone: true},
		"none, with flags of 3.14": {word: 1 << 48, gone: true},
		"a free block":             {word: nextFreeBlock, gone: true},
	} {
		p := opened(layout312())
		m, cookie := known(t, p)
		m.put(codeAt, tc.word)
		requireGone(t, p, m, cookie, tc.gone, what)
	}
}

// The owning thread of an object counts apart, and the two lowest bits of what others count are none.
func TestReferencesFreeThreaded(t *testing.T) {
	for what, tc := range map[string]struct {
		local  uint32
		shared uint64
		gone   bool
	}{
		"the owner's":      {local: 1},
		"immortal":         {local: 1<<32 - 1},
		"merged":           {shared: 1<<2 | 3},
		"fewer than none":  {local: 2, shared: 1<<64 - 1<<2},
		"none":             {gone: true},
		"none, and merged": {shared: 3, gone: true},
	} {
		p := opened(layoutFreeThreaded(t))
		m, cookie := known(t, p)
		m.put(codeAt, 0x7f3a12345680) // ob_tid
		binary.LittleEndian.PutUint32(m.bytes[localReferences:], tc.local)
		m.put(codeAt+sharedReferences, tc.shared)
		requireGone(t, p, m, cookie, tc.gone, what)
	}
}

// malloc writes over the type of what is freed.
func TestFreedType(t *testing.T) {
	everyBuild(t, func(t *testing.T, p *process) {
		m, cookie := known(t, p)
		requireGone(t, p, m, cookie, false, "whole")
		m.put(codeAt+uint64(p.process.ObjectType), 0x7f3a12345680)
		requireGone(t, p, m, cookie, true, "another type")
	})
}

// known is a process's code object with its cookie.
func known(t *testing.T, p *process) (*memory, uint32) {
	t.Helper()
	m := newMemoryOf(p, "Class.method", "/srv/app.py", oneDown)
	c, err := p.readCode(m, codeAt)
	require.NoError(t, err)
	return m, c.cookie
}

func requireGone(t *testing.T, p *process, m *memory, cookie uint32, gone bool, what string) {
	t.Helper()
	_, err := p.Read(m, codeAt, cookie)
	if gone {
		require.ErrorIs(t, err, langruntime.ErrGone, what)
	} else {
		require.NoError(t, err, what)
	}
}

// changing is memory that changes before one of the reads.
type changing struct {
	*memory
	change        func()
	reads, before int // counted; which one it is
}

func (c *changing) ReadAt(p []byte, addr uint64) error {
	if c.reads++; c.reads == c.before {
		c.change()
	}
	return c.memory.ReadAt(p, addr)
}

// What is freed or replaced while it is read has nothing of what comes into the place of its strings and table.
func TestChangedWhileRead(t *testing.T) {
	everyBuild(t, func(t *testing.T, p *process) {
		for what, change := range map[string]func(m *memory){
			"freed": func(m *memory) { clear(m.bytes[:p.process.ObjectType]) },
			"replaced": func(m *memory) {
				m.put(codeAt+uint64(p.process.CodeLinetable), nameAt)
			},
			"replaced by one of another size": func(m *memory) { m.put(codeAt+p.headerBytes(), 78) },
		} {
			m, cookie := known(t, p)
			whole := &changing{memory: m}
			want, err := p.Read(whole, codeAt, cookie)
			require.NoError(t, err)
			other := newMemoryOf(p, "password", "of somebody", bytes.Repeat([]byte{0x88}, 9))
			for n := 1; n <= whole.reads+1; n++ {
				m, _ := known(t, p)
				f, err := p.Read(&changing{memory: m, before: n, change: func() {
					copy(m.bytes[fileAt-base:], other.bytes[fileAt-base:])
					change(m)
				}}, codeAt, cookie)
				if err != nil {
					require.ErrorIs(t, err, langruntime.ErrGone)
					require.LessOrEqual(t, n, whole.reads)
				} else {
					require.Equal(t, want, f, "%s before read %d", what, n)
				}
			}
		}
	})
}
