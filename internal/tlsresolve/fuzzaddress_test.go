package tlsresolve_test

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fuzz"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

const windowStart = 0x100

// word is the reference's way to read.
func word(m *fakemem.Window, addr uint64) (value uint64, mapped bool) {
	for i := range uint64(8) {
		at := addr + i - m.Start
		if addr+i < m.Start || at >= uint64(len(m.Bytes)) {
			return 0, false
		}
		value |= uint64(m.Bytes[at]) << (8 * i)
	}
	return value, true
}

// reference walks the DTV as the C libraries do, one word after the other.
func reference(m *fakemem.Window, l tlsresolve.Location, arm bool, tp uint64) (uint64, outcome) {
	if tp == 0 {
		return 0, noThreadPointer
	}
	if l.Kind == record.TLSStatic {
		return tp + uint64(l.Offset), found
	}
	glibc := l.Kind == record.TLSDTVGlibc
	var where uint64 // of the pointer to the DTV
	switch {
	case !arm:
		where = tp + 8 // tcbhead_t.dtv, struct pthread.dtv
	case glibc:
		where = tp // tcbhead_t.dtv
	default:
		where = tp - 8 // the last member of struct pthread
	}
	dtv, ok := word(m, where)
	if !ok {
		return 0, fault
	}
	if dtv == 0 {
		return 0, notAllocated
	}
	entry, count, generation := uint64(8), dtv, dtv
	if glibc {
		entry, count = 16, dtv-16
		if _, ok = word(m, dtv-8); !ok {
			return 0, fault
		}
	}
	slots, ok := word(m, count)
	if !ok {
		return 0, fault
	}
	reached, ok := word(m, generation)
	if !ok {
		return 0, fault
	}
	if l.Module < 1 || l.Module > slots || l.Module > 65536 {
		return 0, notAllocated
	}
	if glibc && reached < l.Generation {
		return 0, stale
	}
	block, ok := word(m, dtv+entry*l.Module)
	if !ok {
		return 0, fault
	}
	if block == 0 || glibc && block+1 == 0 {
		return 0, notAllocated
	}
	return block + uint64(l.Offset), found
}

// FuzzAddress holds the walk of the DTV against the reference, in hostile memory.
//
//	[0] kind  [1] machine  [2:10] thread pointer  [10:18] module
//	[18:26] generation  [26:34] offset, then the memory
func FuzzAddress(f *testing.F) {
	seed := func(kind record.TLSKind, arm byte, tp, module, generation, offset uint64, words ...uint64) []byte {
		b := []byte{byte(kind), arm}
		for _, w := range append([]uint64{tp, module, generation, offset}, words...) {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	const none = ^uint64(0)
	seeds := [][]byte{
		// {tp, dtv} {slots, -, generation, -} {block, -} ...
		seed(record.TLSDTVGlibc, 0, 0x100, 1, 1, 8, 0x100, 0x120, 2, 0, 3, 0, 0x5000, 0, none, 0),
		seed(record.TLSDTVGlibc, 1, 0x108, 2, 4, 8, 0, 0x120, 2, 0, 3, 0, 0x5000, 0, none, 0),
		seed(record.TLSDTVGlibc, 0, 0x100, 2, 3, 8, 0x100, 0x120, 2, 0, 3, 0, 0x5000, 0, none, 0),
		seed(record.TLSDTVMusl, 0, 0x100, 2, 0, 8, 0x100, 0x110, 2, 0x5000, 0x6000),
		seed(record.TLSDTVMusl, 1, 0x110, 1, 0, 8, 0, 0x110, 2, 0x5000, 0),
		seed(record.TLSStatic, 0, 0x100, 0, 0, none-7),
	}
	var m fakemem.Window
	fuzz.Run(f, seeds, func(t testing.TB, data []byte) {
		if len(data) < 34 {
			return
		}
		number := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
		l := tlsresolve.Location{Kind: record.TLSKind(data[0] % 3), Module: number(10), Generation: number(18), Offset: int64(number(26))}
		machine, arm, tp := elf.EM_X86_64, data[1]&1 != 0, number(2)
		if arm {
			machine = elf.EM_AARCH64
		}
		m = fakemem.Window{Start: windowStart, Bytes: data[34:]}
		got, err := l.Address(&m, machine, tp)
		want, o := reference(&m, l, arm, tp)
		if got != want || outcomeOf(err) != o {
			t.Fatalf("%+v arm=%v tp=%#x: %#x, %v, want %#x, outcome %d", l, arm, tp, got, err, want, o)
		}
		if m.Reads > 3 || m.ReadBytes > 8+24+8 {
			t.Fatalf("%d reads of %d bytes", m.Reads, m.ReadBytes)
		}
	})
}
