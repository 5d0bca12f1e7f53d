package unwind

import (
	"bytes"
	"debug/elf"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// linkageEntryBytes of a linkage table, and what comes before the first entry is as
// long on x86-64, twice as long on aarch64.
const linkageEntryBytes = 16

// readLinkage adds the rows of linkage tables. GNU ld describes those of x86-64 in
// .eh_frame, but not in static executables; lld does not, and nobody on aarch64.
// The spans are sorted, and are afterwards.
func (b *builder) readLinkage() error {
	known := len(b.spans)
	for _, name := range [...]string{".plt", ".plt.sec", ".plt.got", ".iplt"} {
		s, ok, err := b.file.Section(name)
		if err != nil || !ok || s.Type != elf.SHT_PROGBITS {
			continue // no rows rather than no table
		}
		end := s.Addr + s.Size
		if s.Size < 8 || end < s.Addr || !b.executable(s.Addr, end) || b.describes(known, s.Addr, end) {
			continue
		}
		if err := b.linkageTable(s.Addr, end); err != nil {
			return err
		}
	}
	if b.stats.Linkage = len(b.spans) - known; b.stats.Linkage > 0 {
		b.sort()
	}
	return nil
}

// describes reports whether one of the first spans is in [start, end).
func (b *builder) describes(spans int, start, end uint64) bool {
	for _, s := range b.spans[:spans] {
		if b.origin+uint64(s.start) < end && b.origin+s.end() > start {
			return true
		}
	}
	return false
}

func (b *builder) linkageTable(start, end uint64) error {
	var code [3 * linkageEntryBytes]byte
	n := min(end-start, uint64(len(code)))
	if b.file.ReadVaddr(code[:n], start) != nil {
		return nil
	}
	if b.machine.machine == elf.EM_AARCH64 {
		return b.linkageTableAArch64(start, end, code[:n])
	}
	return b.linkageTableX86(start, end, code[:n])
}

// linkageTableX86: entries jump through .got.plt. Those that are bound late then push a
// number and jump to the head of the table, which pushes another word.
func (b *builder) linkageTableX86(start, end uint64, code []byte) error {
	atEntry := record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}
	pushed := func(from uint8, offset int32) record.UnwindRule {
		return record.UnwindRule{CFA: record.CFAPLT, Arg: from, CFAOffset: offset, RAOffset: -8}
	}
	head := []byte("\xff\x35") // push GOT+8(%rip)
	if bytes.HasPrefix(code, head) && end-start > linkageEntryBytes {
		if err := b.constant(start, start+linkageEntryBytes, pushed(6, 16)); err != nil {
			return err
		}
		start, code = start+linkageEntryBytes, code[linkageEntryBytes:]
	}
	const jump, pushImm, endbr, bnd = "\xff\x25", "\x68", "\xf3\x0f\x1e\xfa", "\xf2"
	rule := record.UnwindRule{}
	switch {
	case bytes.HasPrefix(code, []byte(jump)) && len(code) > 6 && code[6] == pushImm[0]:
		rule = pushed(11, 8)
	case bytes.HasPrefix(code, []byte(endbr+pushImm)):
		rule = pushed(9, 8)
	case bytes.HasPrefix(code, []byte(jump)), bytes.HasPrefix(code, []byte(endbr+jump)), bytes.HasPrefix(code, []byte(endbr+bnd+jump)):
		rule = atEntry
	}
	if rule.CFA == record.CFAPLT && start%linkageEntryBytes != 0 {
		return nil // the rule goes by the low bits of the address
	}
	return b.constant(start, end, rule)
}

// linkageTableAArch64: entries jump through .got.plt with what they need in registers,
// to the head of the table, which pushes x16 and x30, when they are bound late.
func (b *builder) linkageTableAArch64(start, end uint64, code []byte) error {
	atEntry := record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}
	const bti, push = "\x5f\x24\x03\xd5", "\xf0\x7b\xbf\xa9" // bti c; stp x16, x30, [sp, #-16]!
	if i := bytes.Index(code[:min(8, len(code))], []byte(push)); i >= 0 && end-start > 2*linkageEntryBytes {
		pushed := start + uint64(i) + 4
		if err := b.constant(start, pushed, atEntry); err != nil {
			return err
		}
		rest := record.UnwindRule{CFA: record.CFASP, CFAOffset: 16, RAOffset: -8}
		if err := b.constant(pushed, start+2*linkageEntryBytes, rest); err != nil {
			return err
		}
		start, code = start+2*linkageEntryBytes, code[2*linkageEntryBytes:]
	}
	code = bytes.TrimPrefix(code, []byte(bti))
	if len(code) < 4 || code[3]&0x9f != 0x90 || code[0]&0x1f != 16 { // adrp x16
		return nil
	}
	return b.constant(start, end, atEntry)
}

// constant adds a span with one rule; none for the zero rule.
func (b *builder) constant(start, end uint64, r record.UnwindRule) error {
	if r == (record.UnwindRule{}) || start >= end {
		return nil
	}
	b.begin(start, end-start)
	if !b.add(end-start, b.ruleNumber(r)) {
		return &LimitError{"rows", uint64(b.limits.Rows)}
	}
	return nil
}
