package elffile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzNotes holds the walk of notes against the definition of their layout, cut
// into pieces by another hand: from the end of one to the start of the next.
func FuzzNotes(f *testing.F) {
	seeds := [][]byte{
		append([]byte{4}, append(note(4, 1, "GNU\x00", "abi"), note(4, 3, "GNU\x00", "id")...)...),
		append([]byte{8}, append(note(8, 5, "GNU\x00", "property"), note(8, 3, "GNU\x00", "id")...)...),
		append([]byte{4}, append(note(4, 3, "Other\x00", "x"), note(4, 4, "Go\x00\x00", "go id")...)...),
		append([]byte{4}, 4, 0, 0, 0, 255, 255, 255, 255, 3, 0, 0, 0, 'G', 'N', 'U', 0),
	}
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) == 0 {
			return
		}
		align, b := uint64(data[0]), data[1:]
		for _, name := range [...]string{"GNU\x00", "Go\x00\x00"} {
			for typ := uint32(3); typ <= 4; typ++ {
				got, ok := findNote(b, align, name, typ)
				want, there := referenceNote(b, align, name, typ)
				if ok != there || !bytes.Equal(got, want) {
					t.Fatalf("%q type %d: %x %v, want %x %v", name, typ, got, ok, want, there)
				}
			}
		}
	})
}

// referenceNote counts in big enough numbers and rounds by division.
func referenceNote(b []byte, align uint64, name string, typ uint32) ([]byte, bool) {
	unit := 4
	if align == 8 {
		unit = 8
	}
	up := func(n int) int { return (n + unit - 1) / unit * unit }
	for at := 0; at+12 <= len(b); {
		u32 := func(i int) int { return int(binary.LittleEndian.Uint32(b[at+4*i:])) }
		descAt := up(12 + u32(0))
		if at+descAt+u32(1) > len(b) {
			return nil, false
		}
		desc := b[at+descAt : at+descAt+u32(1)]
		if u32(2) == int(typ) && u32(0) == 4 && string(b[at+12:at+16]) == name {
			return desc, true
		}
		at += up(descAt + u32(1))
	}
	return nil, false
}
