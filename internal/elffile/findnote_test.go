package elffile

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// note makes a note padded to a multiple of align.
func note(align int, typ uint32, name, desc string) []byte {
	var b []byte
	for _, v := range []uint32{uint32(len(name)), uint32(len(desc)), typ} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	pad := func() { b = append(b, make([]byte, (align-len(b)%align)%align)...) }
	b = append(b, name...)
	pad()
	b = append(b, desc...)
	pad()
	return b
}

func TestFindNote(t *testing.T) {
	for _, align := range []int{4, 8} {
		b := note(align, 5, "GNU\x00", "1234")
		b = append(b, note(align, 3, "GNU", "wrong")...)
		b = append(b, note(align, 1, "GNU\x00", "wrong")...)
		b = append(b, note(align, 3, "longer name\x00", "abcdefghi")...)
		b = append(b, note(align, 3, "GNU\x00", "right")...)
		got, ok := findNote(b, uint64(align), "GNU\x00", 3)
		require.True(t, ok)
		require.Equal(t, "right", string(got))
		_, ok = findNote(b[:len(b)-8], uint64(align), "GNU\x00", 3)
		require.False(t, ok)
		_, ok = findNote(b, uint64(align), "Go\x00\x00", 3)
		require.False(t, ok)
	}
	huge := note(4, 3, "GNU\x00", "right")
	binary.LittleEndian.PutUint32(huge[4:], ^uint32(0))
	_, ok := findNote(huge, 4, "GNU\x00", 3)
	require.False(t, ok)
	_, ok = findNote(nil, 4, "GNU\x00", 3)
	require.False(t, ok)
}
