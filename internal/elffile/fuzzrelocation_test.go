package elffile_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzRelocations gives the dynamic section any numbers, and holds what is read
// against a plain walk of both tables.
//
//	five u64: DT_RELASZ, DT_RELACOUNT, DT_PLTRELSZ, DT_PLTREL, split
//	then the tables: DT_RELA at the start, DT_JMPREL at split
func FuzzRelocations(f *testing.F) {
	seed := func(rest int, v ...uint64) []byte {
		var b []byte
		for _, w := range v {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		for i := range rest {
			b = append(b, byte(i))
		}
		return b
	}
	seeds := [][]byte{
		seed(24*5, 72, 1, 48, uint64(elf.DT_RELA), 72),
		seed(24*5, 120, 0, 0, 0, 120),
		seed(24*5, 24, 5, 96, uint64(elf.DT_RELA), 24),
		seed(24, 1<<63, 1<<62, ^uint64(0), uint64(elf.DT_RELA), 0),
	}
	var m image
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) < 40 {
			return
		}
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(data[8*i:]) }
		size, leading, pltSize, pltType, split, tables := word(0), word(1), word(2), word(3), word(4), data[40:]
		m.reset()
		at := m.put(tables)
		m.tag(elf.DT_RELA, at)
		m.tag(elf.DT_RELASZ, size)
		m.tag(elf.DT_RELACOUNT, leading)
		m.tag(elf.DT_JMPREL, at+split)
		m.tag(elf.DT_PLTRELSZ, pltSize)
		m.tag(elf.DT_PLTREL, pltType)
		m.finish()
		e, err := m.open()
		if err != nil {
			t.Fatal(err)
		}
		// The tables are followed by the dynamic section, which may be taken for more.
		rest := m.b[at-imageBase:]
		first, whole := plainWalk(rest, size, leading)
		second, alsoWhole := []byte(nil), true
		if whole && elf.DynTag(pltType) == elf.DT_RELA && at+split != 0 {
			if split < uint64(len(rest)) {
				second, alsoWhole = plainWalk(rest[split:], pltSize, 0)
			} else {
				alsoWhole = pltSize < 24
				if back := -split; back <= at-imageBase && back > 0 { // before the tables
					second, alsoWhole = plainWalk(m.b[at-imageBase-back:], pltSize, 0)
				}
			}
		}
		want := append(append(make([]byte, 0, 512), first...), second...)
		err = e.Relocations(func(r elffile.Relocation) bool {
			if len(want) < 24 || r.Offset != binary.LittleEndian.Uint64(want) || r.Type != binary.LittleEndian.Uint32(want[8:]) ||
				r.Symbol != binary.LittleEndian.Uint32(want[12:]) || r.Addend != int64(binary.LittleEndian.Uint64(want[16:])) {
				t.Fatalf("%+v is not the next of %x", r, want)
			}
			want = want[24:]
			return true
		})
		if (err == nil) != (whole && alsoWhole) || err == nil && len(want) >= 24 {
			t.Fatalf("%v, %d bytes of relocations left", err, len(want))
		}
	})
}

// plainWalk returns the entries of a table; whole is false when the file does
// not have all of them.
func plainWalk(b []byte, size, skip uint64) (entries []byte, whole bool) {
	n := size / 24
	if skip >= n {
		return nil, true
	}
	if size > uint64(len(b)) {
		return nil, false
	}
	return b[24*skip : 24*n], true
}
