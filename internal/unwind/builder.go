package unwind

import (
	"cmp"
	"debug/elf"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/offheap"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// span is what one FDE describes: addresses from start on, rows from first on to
// the first row of the span that was read after it.
type span struct {
	start uint32 // from builder.origin
	bytes uint32
	first uint32
	count uint32
}

func (s span) end() uint64 { return uint64(s.start) + uint64(s.bytes) }

// addresses are virtual ones, in [start, end).
type addresses struct{ start, end uint64 }

// builder collects rows in the order of the section, then makes the table.
type builder struct {
	file    *elffile.File
	limits  Limits
	machine machine
	text    []addresses // that may be executed, in ascending order
	origin  uint64      // a multiple of record.UnwindBlockBytes at or before all text
	stats   Stats

	// The section that is being read.
	eh         bool
	vaddr      uint64
	cies       map[uint64]*cie // by offset
	last       *cie
	lastOff    uint64
	signalFDEs int
	row        func(from, to uint64) bool // addRow, bound once
	signal     bool                       // the FDE describes a signal frame
	full       bool                       // addRow was refused a row
	ruleOf     map[record.UnwindRule]uint16
	rules      []record.UnwindRule
	latest     [32]knownRule // of ruleOf, by latestRule

	latestDelta [64]knownDelta // of Go's functions

	// Each row is the bytes that it lasts and its rule. They are outside of Go's heap: there
	// are several times more of them than most of what else a profiler holds.
	rows  []record.UnwindRow
	spans []span
	free  func()

	// Of Limits.Hold: how long the lists may become before it is asked, what there is beside them,
	// and its error.
	roomRows, roomSpans int
	more                Held
	refused             error
}

// newBuilder makes one that free must be called of.
func newBuilder(e *elffile.File, limits Limits) (*builder, error) {
	b := &builder{file: e, limits: limits, rules: make([]record.UnwindRule, 1), ruleOf: map[record.UnwindRule]uint16{{}: 0}}
	b.machine.arch = archOf(e.Machine)
	b.row = b.addRow
	for p := range e.Loads() {
		// Only what the file has: so the size of the file bounds that of its text.
		if p.Flags&elf.PF_X == 0 || p.Filesz == 0 || p.Vaddr+p.Filesz < p.Vaddr || p.Offset >= uint64(e.Size()) {
			continue
		}
		if len(b.text) == maxSegments {
			return nil, &LimitError{"executable segments", maxSegments}
		}
		b.text = append(b.text, addresses{p.Vaddr, p.Vaddr + min(p.Filesz, uint64(e.Size())-p.Offset)})
	}
	if len(b.text) == 0 {
		return nil, ErrNone
	}
	slices.SortFunc(b.text, func(x, y addresses) int { return cmp.Compare(x.start, y.start) })
	b.origin = b.text[0].start &^ (record.UnwindBlockBytes - 1)
	for _, t := range b.text {
		if t.end-b.origin > b.limits.TextBytes {
			return nil, &LimitError{"bytes of text", b.limits.TextBytes}
		}
	}
	rows, freeRows := offheap.Reserve[record.UnwindRow](b.limits.Rows)
	spans, freeSpans := offheap.Reserve[span](b.limits.Functions + 1)
	b.rows, b.spans = rows, spans
	b.free = func() {
		b.rows, b.spans = nil, nil
		freeRows()
		freeSpans()
	}
	return b, nil
}

// executable reports whether [start, end) lies in one executable segment.
func (b *builder) executable(start, end uint64) bool {
	for _, t := range b.text {
		if start >= t.start && end <= t.end {
			return true
		}
	}
	return false
}

// begin starts a span.
func (b *builder) begin(start, bytes uint64) {
	b.spans = append(b.spans, span{start: uint32(start - b.origin), bytes: uint32(bytes), first: uint32(len(b.rows))})
}

// addRow takes up a row in the machine's state. It returns false when there are
// too many.
func (b *builder) addRow(from, to uint64) bool {
	r, reason := b.machine.compile(b.signal)
	b.stats.Counts[reason]++
	return b.add(to-from, b.ruleNumber(r))
}

// knownRule is a rule and its number.
type knownRule struct {
	rule   record.UnwindRule
	number uint16
}

// latestRule returns the place of a rule in builder.latest: most are one of a few, and a map is slow.
func (b *builder) latestRule(r *record.UnwindRule) *knownRule {
	return &b.latest[(uint32(r.CFAOffset)^uint32(r.FPOffset)<<1)>>3%uint32(len(b.latest))]
}

// ruleNumber returns the index of a rule.
func (b *builder) ruleNumber(r record.UnwindRule) uint16 {
	latest := b.latestRule(&r)
	if latest.rule == r {
		return latest.number
	}
	n, ok := b.ruleOf[r]
	if !ok {
		if len(b.rules) >= b.limits.Rules {
			b.stats.Counts[ReasonRules]++
			return 0
		}
		n = uint16(len(b.rules))
		b.rules = append(b.rules, r)
		b.ruleOf[r] = n
	}
	*latest = knownRule{r, n}
	return n
}

// add appends a row that lasts some bytes; one of many takes several.
func (b *builder) add(bytes uint64, rule uint16) bool {
	for bytes > 0 {
		if len(b.rows) == b.limits.Rows || len(b.spans) > b.limits.Functions ||
			(len(b.rows) >= b.roomRows || len(b.spans) > b.roomSpans) && !b.hold() {
			b.full = true
			return false
		}
		n := min(bytes, 0xffff)
		b.rows = append(b.rows, record.NewUnwindRow(n, rule))
		bytes -= n
	}
	b.spans[len(b.spans)-1].count = uint32(len(b.rows)) - b.spans[len(b.spans)-1].first
	return true
}

// sort puts the spans into the order of their addresses. Of two that start at
// the same address the longer comes last, of two that are equal the one that was
// read first.
func (b *builder) sort() {
	slices.SortStableFunc(b.spans, func(x, y span) int {
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.bytes, y.bytes), -cmp.Compare(x.first, y.first))
	})
}
