package unwind

import (
	"runtime"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// writer writes the rows of a table in ascending order.
type writer struct {
	base  uint64 // from builder.origin
	last  uint64 // address of the last row
	rule  uint16 // of the last row
	rows  []record.UnwindRow
	index []uint32
}

// put says that a rule holds from an address on, which is not below the last
// one. Rows that do not differ from the one before are dropped.
func (w *writer) put(at uint64, rule uint16) {
	if len(w.rows) > 0 && rule == w.rule {
		return
	}
	w.last, w.rule = at, rule
	for block := (at - w.base) / record.UnwindBlockBytes; uint64(len(w.index)) <= block; {
		w.index = append(w.index, uint32(len(w.rows)))
	}
	w.rows = append(w.rows, record.NewUnwindRow((at-w.base)%record.UnwindBlockBytes, rule))
}

// walk puts all rows. Where spans overlap, the one that starts last holds, to
// its own end, as it does for runtimes that search the table of .eh_frame_hdr.
func (b *builder) walk(w *writer) {
	if uint64(b.spans[0].start) > w.base {
		w.put(w.base, 0)
	}
	at := w.base // up to where rows are known
	for i, s := range b.spans {
		from, to := uint64(s.start), s.end()
		if i+1 < len(b.spans) {
			to = min(to, uint64(b.spans[i+1].start))
		}
		if from == to {
			continue
		}
		if from > at {
			w.put(at, 0)
		}
		for n := s.first; n < s.first+s.count && from < to; n++ {
			r := b.rows[n]
			w.put(from, uint16(r.Rule()))
			from += r.Offset()
		}
		if from < to {
			w.put(from, 0) // the rest was malformed
		}
		at = to
	}
	w.put(at, 0)
}

// table makes the table of the spans, which are sorted.
func (b *builder) table() (*Table, error) {
	base := uint64(b.spans[0].start) &^ (record.UnwindBlockBytes - 1)
	last := uint64(0)
	for i, s := range b.spans {
		last = max(last, s.end())
		if i > 0 && b.spans[i-1].end() > uint64(s.start) {
			b.stats.Counts[ReasonOverlap]++
		}
	}
	blocks := (last - base + record.UnwindBlockBytes - 1) / record.UnwindBlockBytes
	// Each span has its rows, and one before and behind them; what is not written takes no memory.
	most := len(b.rows) + 2*len(b.spans) + 2
	if err := b.holdMore(Held{Mapped: most*rowBytes + 4*int(blocks+1)}); err != nil {
		return nil, err
	}
	rows, freeRows := offheap.Reserve[record.UnwindRow](most)
	index, freeIndex := offheap.Reserve[uint32](int(blocks) + 1)
	w := writer{base: base, rows: rows, index: index}
	b.walk(&w)
	if end := base + blocks*record.UnwindBlockBytes; len(w.rows) > 0 && w.last == end {
		w.rows = w.rows[:len(w.rows)-1] // nothing holds behind the table
	}
	for uint64(len(w.index)) < blocks+1 {
		w.index = append(w.index, uint32(len(w.rows)))
	}
	w.index = w.index[:blocks+1]
	b.stats.FDEs = len(b.spans) - b.stats.Trampolines - b.stats.Clones - b.stats.Linkage - b.stats.FromCode
	t := &Table{
		UnwindTable: record.UnwindTable{Base: b.origin + base, Rules: b.rules, Index: w.index, Rows: w.rows},
		Stats:       b.stats,
		free: func() {
			freeRows()
			freeIndex()
		},
	}
	t.unreachable = runtime.AddCleanup(t, func(free func()) { free() }, t.free)
	return t, nil
}
