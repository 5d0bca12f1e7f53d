package elffile

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// fileOf is a file without a header.
func fileOf(text string) *File {
	return &File{r: bytes.NewReader([]byte(text)), size: uint64(len(text))}
}

// What reaches beyond the end is malformed, and none of it is handed out.
func TestRangeBehindTheFile(t *testing.T) {
	f := fileOf("0123456789")
	var format *FormatError
	require.NoError(t, f.read(make([]byte, 4), 6))
	require.ErrorAs(t, f.read(make([]byte, 4), 7), &format)
	require.ErrorAs(t, f.read(make([]byte, 1), 1<<63), &format)
	none := func(uint64, []byte) bool {
		require.Fail(t, "called")
		return true
	}
	require.ErrorAs(t, f.each(2, 3, 3, none), &format)
	require.ErrorAs(t, f.each(11, 1, 0, none), &format)
	require.ErrorAs(t, f.each(0, 8, 1<<61+1, none), &format, "the size of the table overflows")
	n := 0
	require.NoError(t, f.each(1, 3, 3, func(uint64, []byte) bool { n++; return true }))
	require.Equal(t, 3, n)
}

// A table can be read while another one is.
func TestNestedTables(t *testing.T) {
	f := fileOf("abcABC")
	var got string
	require.NoError(t, f.each(0, 1, 3, func(i uint64, outer []byte) bool {
		require.NoError(t, f.each(3, 1, 3, func(_ uint64, inner []byte) bool {
			got += string(inner)
			return true
		}))
		got += string(outer)
		return true
	}))
	require.Equal(t, "ABCaABCbABCc", got)
}

func TestNameIs(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 100))
	f := fileOf("name\x00" + long + "\x00end")
	for _, c := range []struct {
		off  uint64
		name string
		want bool
	}{{0, "name", true}, {0, "nam", false}, {0, "names", false}, {5, long, true}, {5, long[1:], false}, {6, long[1:], true}, {5, long + "x", false}} {
		got, err := f.nameIs(c.off, c.name)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%d %q", c.off, c.name)
	}
	_, err := f.nameIs(106, "end")
	require.Error(t, err, "it does not end")
}
