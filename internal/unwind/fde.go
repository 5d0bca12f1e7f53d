package unwind

import (
	"debug/elf"
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// read compiles all FDEs of a section.
func (b *builder) read(s elffile.Section, terminated, eh bool) error {
	r, err := b.file.Contents(s, b.limits.SectionBytes+1)
	if err != nil {
		return err
	}
	b.eh, b.vaddr = eh, s.Addr
	b.cies, b.last = make(map[uint64]*cie), nil // offsets are of this section
	b.stats.Source = SourceDebugFrame
	if eh {
		b.stats.Source = SourceEHFrame
	}
	in := newEntries(r, terminated, s.Size, uint64(b.limits.SectionBytes))
	for {
		x, ok, err := in.next()
		if !ok || err != nil {
			b.stats.SectionBytes, b.stats.Counts[ReasonEntryBytes] = int64(in.off), in.oversized
			return err
		}
		if err := b.entry(x); err != nil {
			return err
		}
	}
}

// entry takes up a CIE or an FDE. What tells them apart differs: in .eh_frame a
// CIE has an id of 0, and an FDE has the distance from there back to its CIE;
// in .debug_frame a CIE has an id of all ones, and an FDE the offset of its CIE.
func (b *builder) entry(x entry) error {
	c := cursor{b: x.body}
	var id, reference uint64
	switch {
	case b.eh:
		id = uint64(c.u32())
		reference = x.offset - id
	case x.wide:
		reference = c.u64()
		id = reference + 1
	default:
		reference = uint64(c.u32())
		id = uint64(uint32(reference + 1))
	}
	if c.bad {
		b.stats.Counts[ReasonMalformed]++
		return nil
	}
	vaddr := b.vaddr + x.offset
	if id == 0 {
		if len(b.cies) == maxCIEs {
			return &LimitError{"common information entries", maxCIEs}
		}
		parsed := b.machine.parseCIE(&c, vaddr, b.eh)
		b.cies[x.off] = &parsed
		if len(b.cies)%cieStep == 0 && !b.hold() {
			return b.refused
		}
		return nil
	}
	// A CIE comes before its FDEs: so no section is read twice.
	if b.last == nil || b.lastOff != reference {
		b.last, b.lastOff = b.cies[reference], reference
	}
	if b.last == nil || !b.last.ok {
		b.stats.Counts[ReasonCIE]++
		return nil
	}
	return b.fde(b.last, c, vaddr)
}

// fde compiles an FDE from behind its reference to a CIE.
func (b *builder) fde(x *cie, c cursor, vaddr uint64) error {
	start := c.pointer(x.encoding, vaddr, 0)
	length := c.value(x.encoding &^ encRelative)
	if x.augmented {
		c.bytes(c.uleb())
	}
	if c.bad {
		b.stats.Counts[ReasonMalformed]++
		return nil
	}
	// Linkers leave 0 where they have removed a function.
	if start == 0 || length == 0 || length > math.MaxUint64-start || !b.executable(start, start+length) {
		b.stats.Counts[ReasonOutside]++
		return nil
	}
	if x.signal && b.machine.machine == elf.EM_AARCH64 {
		return b.signalFDE(start, start+length)
	}
	if len(b.spans) >= b.limits.Functions {
		return &LimitError{"functions", uint64(b.limits.Functions)}
	}
	b.begin(start, length)
	b.machine.begin(x)
	b.signal, b.full = x.signal, false
	if !b.machine.run(&c, vaddr, start, start+length, b.row) {
		if b.full {
			return &LimitError{"rows", uint64(b.limits.Rows)}
		}
		b.stats.Counts[ReasonMalformed]++
	}
	return nil
}
