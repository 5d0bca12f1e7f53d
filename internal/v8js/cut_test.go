package v8js

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// longTable is a source position table of so many bytes more than are read: of line 2 at first, of line 3 from 5 on, and
// of line 4 from 12 on, to where it is read no further. The last number spans the end of what is read.
func (b *builder) longTable(more int) []byte {
	t := b.table(0, sourcePosition(5, -1), 5, sourcePosition(9, -1))
	last := b.table(-1, 0, 12-5-1, sourcePosition(16, -1)-sourcePosition(9, -1))[2:] // a difference
	for len(t)+len(last) < maxTableBytes-4 {
		t = append(t, 0, 0) // the same again
	}
	t = append(append(t, last...), 40)
	for len(t) < maxTableBytes+more-1 {
		t = append(t, 0x81)
	}
	return append(t, 1)
}

// Behind what is read of a long table no line is known, nor from the last entry on, whose end is not.
func TestTablesCut(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		b.bytes = append(b.bytes, make([]byte, 8*maxTableBytes)...)
		script := b.script(testFile, testSource)
		scope := b.scope("work", "", 5, 2)
		for more, want := range map[int]int{0: 4, 1: 0} {
			table := b.longTable(more)
			require.Len(t, table, maxTableBytes+more)

			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			object := b.shared(scope, script, b.bytecode(100, table), 3)
			s, err := b.heap().readShared(object)
			require.NoError(t, err)
			f, err := p.Read(b.memory, object, cookieOf(s.hash))
			require.NoError(t, err)
			code := b.compile(&compilation{functions: []uint64{object}})
			b.set(code, b.l.release.positions, b.array(table))
			compiled, err := b.readCode(t, p, code)
			require.NoError(t, err)
			for position, line := range map[uint32]int{1: 2, 6: 3, 12: 3, 13: want} {
				require.Equal(t, line, f.Frames(nil, position)[0].Line, "%d", position)
				require.Equal(t, line, compiled.Frames(nil, position)[0].Line, "%d", position)
			}
			if more > 0 {
				require.Zero(t, f.Frames(nil, 99)[0].Line)
				require.Zero(t, compiled.Frames(nil, 99)[0].Line)
			}
		}
	})
}

// So it is where a table of the baseline compiler is cut, or the bytecode that it belongs to.
func TestBaselineCut(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		b.bytes = append(b.bytes, make([]byte, 8<<20)...)
		of := lines{{0, 2}, {maxTableBytes / 2, 3}}
		lineOf := func(bytecode uint64, table []byte) func(offset int) int {
			c := code{size: 1 << 24, positions: b.array(table)}
			l, err := b.heap().baselineLines(&c, bytecode, of)
			require.NoError(t, err)
			return func(offset int) int {
				line, _ := l.at(uint32(offset))
				return line
			}
		}
		for more, want := range map[int]int{0: 3, 1: 0} {
			table := bytes.Repeat([]byte{1}, maxTableBytes+more)
			table[len(table)-2] = 0x81
			at := lineOf(b.bytecode(2*maxTableBytes, nil), table)
			require.Equal(t, 2, at(maxTableBytes/2))
			require.Equal(t, 3, at(maxTableBytes-2))
			require.Equal(t, want, at(maxTableBytes))
		}

		// Instructions of four bytes, of which each has one of the table.
		for more, want := range map[int]int{-4: 3, 4: 0} {
			n := (maxBytecodeBytes + more) / 4
			bytecode := b.bytecode(4*n, nil)
			copy(b.bytes[bytecode-1-base+uint64(b.l.release.bytecodeData):], bytes.Repeat([]byte{0, 13, 0, 0}, n))
			of = lines{{0, 2}, {maxBytecodeBytes / 2, 3}}
			at := lineOf(bytecode, bytes.Repeat([]byte{1}, min(n+1, maxTableBytes)))
			require.Equal(t, 2, at(n/4))
			require.Equal(t, 3, at(n-8))
			require.Equal(t, want, at(n+8))
		}
	})
}

// Of an entry of which the end is missing there is nothing.
func TestPositionTorn(t *testing.T) {
	for _, torn := range [][]byte{{4}, {4, 0x81}, {0x84}, append([]byte{4}, bytes.Repeat([]byte{0xff}, 12)...)} {
		p := positionTable{b: append([]byte{4, 20}, torn...)}
		require.True(t, p.next())
		require.False(t, p.next(), "% x", torn)
	}
}
