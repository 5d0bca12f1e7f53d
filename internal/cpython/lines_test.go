package cpython

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	table := []byte{
		0x80, 0x11, // 1 unit on the first line
		0x80 | 10<<3, 1, 2, // another one
		0x80 | 11<<3, 1, 2, // 1 unit, a line down
		0x80 | 13<<3 | 2, 0x40 | 8, 2, // 3 units, no columns: 136 >> 1 = 68 further
		0x80 | 14<<3, 3, 0, 1, 1, // long: a line up
		0x80 | 15<<3 | 3, // 4 units without a line
		0x80 | 12<<3 | 7, 0, 0,
	}
	want := []int{100, 100, 101, 169, 169, 169, 168, 0, 0, 0, 0, 170, 170, 170, 170, 170, 170, 170, 170, 0}
	all := decodeLines(table, 100)
	for i, line := range want {
		require.Equal(t, line, all.at(uint32(i)), i)
	}
	require.Len(t, all, 6, "one for each line")
	require.Empty(t, decodeLines([]byte{1}, 100), "no entry")
}

// An instruction without a line has none, and neither has a frame whose instruction is not known, or behind the table.
// Only the function begins where it is defined.
func TestLinesUnknown(t *testing.T) {
	everyBuild(t, func(t *testing.T, p *process) {
		m := newMemoryOf(p, "name", "file", append(bytes.Repeat(oneDown, 2), 0x80|locationNone<<3, 0x80|locationOneLine<<3, 0, 0))
		c, err := p.readCode(m, codeAt)
		require.NoError(t, err)
		f, err := p.Read(m, codeAt, c.cookie)
		require.NoError(t, err)
		for position, line := range []int{0, 11, 12, 0, 12, 0} {
			frame := f.Frames(nil, uint32(position))[0]
			require.Equal(t, line, frame.Line, position)
			require.Equal(t, 10, frame.StartLine)
		}
	})
}

// Behind what is read of a long table no line is known. Its last entry, which may be cut, is not taken.
func TestLinesCut(t *testing.T) {
	everyBuild(t, func(t *testing.T, p *process) {
		const entries = maxTableBytes / 3
		for _, more := range []int{0, 1} {
			table := bytes.Repeat(oneDown, entries) // of 3 bytes
			table[3] = 0x80 | locationNone<<3
			table = append(table, make([]byte, maxTableBytes-len(table)+more)...)
			table[maxTableBytes-1] = 0x80 | locationNoColumns<<3 // its number is behind
			m := newMemoryOf(p, "name", "file", table)
			c, err := p.readCode(m, codeAt)
			require.NoError(t, err)
			f, err := p.Read(m, codeAt, c.cookie)
			require.NoError(t, err)
			lineAt := func(instruction uint32) int { return f.Frames(nil, instruction+1)[0].Line }
			require.Equal(t, 11, lineAt(0))
			require.Zero(t, lineAt(1), "of no line")
			require.Equal(t, 9+entries, lineAt(entries-1))
			require.Zero(t, lineAt(entries+1), "behind the table")
			if more > 0 {
				require.Zero(t, lineAt(entries), "of an entry that is cut")
			}
		}
		require.Empty(t, wholeEntries(make([]byte, 9)))
	})
}

func FuzzLine(f *testing.F) {
	f.Add([]byte{0x80, 0x11, 0xd9, 1, 2, 0xf8}, 7, uint64(3))
	f.Fuzz(func(t *testing.T, table []byte, firstLine int, instruction uint64) {
		all := decodeLines(table, firstLine)
		if line := all.at(uint32(instruction)); line < 0 || len(all) > len(table) {
			t.Fatal(line, len(all))
		}
	})
}
