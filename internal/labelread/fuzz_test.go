package labelread

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// window is a memory of which one stretch is readable. Every pointer in it is
// bent to lead into the stretch, or else hardly any would.
type window struct {
	data []byte
	read int
}

func (w *window) ReadAt(p []byte, addr uint64) error {
	w.read += len(p)
	off := addr % 4096
	if addr>>12 == 0xfff || off > uint64(len(w.data)) || uint64(len(p)) > uint64(len(w.data))-off {
		return errFault
	}
	copy(p, w.data[off:])
	return nil
}

// maxRead is all that one reading may ask for: the DTV, the set, its slots, the labels, a
// map of Go's.
const maxRead = 64 + setBytes + slotBytes*record.MaxLabelSlots + record.MaxLabelBytes + record.MaxLabelKeyBytes + record.MaxLabelValueBytes +
	bmapBytes*maxMapVisits

// FuzzRead reads label sources out of arbitrary memory. The first bytes say
// which: ABI, kind of location, module, and two of offset.
func FuzzRead(f *testing.F) {
	const head = 5
	fuzz.Run(f, [][]byte{
		append([]byte{1, 0, 0, 0, 0}, words(16, 0, 40, 2, 9, 3, 8, 3, 8, 3, 8, 3, 8)...),
		append([]byte{2, 0, 0, 0, 0}, append(words(16, 0), contextRecord(1, 9, "\x00\x02ab\x01\x03abc")...)...),
		append([]byte{0, 1, 1, 8, 0}, words(40, 24, 0, 8, 64, 1, 0, 2, 0, 32, 0, 96, 1, 8, 1, 8)...),
		append([]byte{1, 2, 1, 8, 0}, words(8, 24, 1, 40, 8, 8, 8)...),
		append([]byte{3, 0, 0, 0, 0}, append(words(
			1<<20+32, 1<<20+40, 0x20<<32, 1<<20+49,
			1<<20+57, 1<<20+57, // context, key
			0,
			1<<20+97, 2112<<32, 0, 1<<20+97, 0, // context; its map is the table below
			1<<20+57, 10<<32, 0, 0, 1<<32, 0, 1<<20+57, 1<<20+161, 0xffffffff<<32, 0, 0, 0,
			1<<20+57, 0, 0, 0, 1<<20+232,
		), contextRecord(1, 4, "\x00\x02ab")...)...),
		append([]byte{4, 0, 0, 0, 0}, words(
			1<<20+8,
			0, 1<<20+32, 1<<20+72, // g
			0, 0, 0, 1, 1<<20+8, // m
			1<<20+96, 1, 1,
			1<<20+8, 3, 1<<20+8, 4,
		)...),
		append([]byte{4, 0, 1, 0, 0}, words(
			1<<20+8,
			0, 1<<20+32, 1<<20+72, // g
			0, 0, 0, 1, 1<<20+8, // m
			1<<20+80,
			1, 0, 1<<20+112, 0,
			77, 1<<20+8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1<<20+8, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		)...),
	}, func(t testing.TB, data []byte) {
		if len(data) < head {
			return
		}
		abi := record.ABIV0 + record.ABI(data[0]%(record.NumABIs-1))
		at := tlsresolve.Location{
			Kind: record.TLSKind(data[1] % 5), Module: uint64(data[2]),
			Offset: int64(int16(binary.LittleEndian.Uint16(data[3:]))),
		}
		for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
			w := &window{data: data[head:]}
			thread := Stopped{TID: 1, ThreadPointer: 1 << 20, Goroutine: 1<<20 + 8}
			source := at.Source(abi)
			source.V8Field, source.V8MapType = 0x20, 2112
			source.Go, source.GoMap = record.GoLayout{GM: 8, GLabels: 16, MProcID: 24, MCurG: 32}, data[2]&1 != 0
			r := Read(w, machine, thread, source)
			if w.read > maxRead {
				t.Fatalf("%d bytes asked for", w.read)
			}
			requireBlock(t, abi, r)
			explained := r.Outcome == record.OutcomeFault || r.Outcome == record.OutcomeInvalid
			if explained != (r.Err != nil) {
				t.Fatalf("%v: %v", r.Outcome, r.Err)
			}
		}
	})
}
