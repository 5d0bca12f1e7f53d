package gopclntab

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
)

// FuzzReader reads a hostile table that Find has let pass.
func FuzzReader(f *testing.F) {
	seed := newImage(3, []byte{2, 8, 1, 8, 0}, inlinedCallBytes(6, 12, 7))
	var file bytes.Reader
	fuzz.Run(f, [][]byte{seed.data}, func(t testing.TB, data []byte) {
		table := seed.table
		file.Reset(data)
		askAll(t, table, NewReader(table, &file))
	})
}

// askAll asks everything of a table.
func askAll(t testing.TB, table Table, r *Reader) {
	var frames []Frame
	for pc := table.Start; pc < table.Limit && pc-table.Start < 64; pc += 4 {
		var err error
		if frames, err = r.Frames(frames[:0], pc); err != nil && len(frames) > 0 {
			t.Fatalf("%d frames and %v", len(frames), err)
		}
		if len(frames) > maxInlined+1 {
			t.Fatalf("%d frames", len(frames))
		}
		for _, fr := range frames {
			if !utf8.ValidString(fr.Function) || !utf8.ValidString(fr.File) || len(fr.Function) > 3*maxNameBytes {
				t.Fatalf("%q in %q", fr.Function, fr.File)
			}
		}
	}
	n := 0
	_ = r.Functions(func(fn Func) bool {
		last := fn.Entry
		_ = r.StackDeltas(&fn, func(start uint64, _ int32) bool {
			if start < last || start >= fn.End {
				t.Fatalf("%#x after %#x in [%#x, %#x)", start, last, fn.Entry, fn.End)
			}
			last = start
			return true
		})
		n++
		return n < 64
	})
}

// FuzzFind looks for a table in a hostile file.
func FuzzFind(f *testing.F) {
	var seeds [][]byte
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		seeds = append(seeds, fileOf(newImage(3, []byte{2, 8, 1, 8, 0}, inlinedCallBytes(6, 12, 7)), machine))
	}
	var file bytes.Reader
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		file.Reset(data)
		e, err := elffile.New(&file, int64(len(data)))
		if err != nil {
			return
		}
		table, err := Find(e)
		if err != nil {
			return
		}
		if table.Start >= table.Limit || table.off+table.size > uint64(len(data)) {
			t.Fatalf("%+v in %d bytes", table, len(data))
		}
		askAll(t, table, NewReader(table, &file))
	})
}

// fileOf makes an ELF file of one segment of a table, with a moduledata behind it.
func fileOf(m *image, machine elf.Machine) []byte {
	const base, start = 0x400000, 64 + 56
	b := make([]byte, start)
	copy(b, elf.ELFMAG+"\x02\x01\x01")
	le := binary.LittleEndian
	le.PutUint16(b[16:], uint16(elf.ET_EXEC))
	le.PutUint16(b[18:], uint16(machine))
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	data := bytes.Clone(m.data)
	h := data[:headerBytes]
	le.PutUint32(h, magic120)
	h[6], h[7] = quantum(machine), 8
	for i, v := range []uint64{m.table.functions, 1, 0, m.table.names, m.table.units, m.table.header.files, m.table.header.values, m.table.code} {
		le.PutUint64(h[8+8*i:], v)
	}
	for len(data)%8 != 0 {
		data = append(data, 0)
	}
	var w words
	w[wordHeader], w[wordNames], w[wordFunctions] = base+start, base+start+m.table.names, m.table.functions+1
	w[wordText], w[wordGofunc120] = base, base+start+m.table.inlined
	for _, v := range w {
		data = le.AppendUint64(data, v)
	}
	b = append(b, data...)
	p := b[64:]
	le.PutUint32(p, uint32(elf.PT_LOAD))
	le.PutUint32(p[4:], uint32(elf.PF_R|elf.PF_W|elf.PF_X))
	le.PutUint64(p[16:], base)
	le.PutUint64(p[32:], uint64(len(b)))
	le.PutUint64(p[40:], uint64(len(b)))
	le.PutUint64(p[48:], 8)
	return b
}

// The seeds of FuzzFind are found.
func TestSeeds(t *testing.T) {
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
		_, r := find(t, fileOf(newImage(3, []byte{2, 8, 1, 8, 0}, inlinedCallBytes(6, 12, 7)), machine))
		frames, err := r.Frames(nil, 0x400000)
		require.NoError(t, err)
		require.Len(t, frames, 2-int(r.t.quantum)/4)
	}
}
