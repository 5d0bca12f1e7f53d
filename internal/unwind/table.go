package unwind

import (
	"runtime"
	"sort"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Table holds the rows of a file. The row of an address in block b, which is
// (address - Base) / record.UnwindBlockBytes, is the last of Rows[Index[b]:Index[b+1]] whose
// offset is not above address % record.UnwindBlockBytes, or the one before Index[b].
type Table struct {
	record.UnwindTable
	Stats Stats

	free        func()
	unreachable runtime.Cleanup
}

// Close gives the memory of the table back, after which it must not be used. That of one that
// is not closed is given back some time after its last use.
func (t *Table) Close() {
	t.unreachable.Stop()
	t.UnwindTable = record.UnwindTable{}
	t.free()
}

// Lookup returns the rule that holds at a virtual address of the file; ok is
// false when the table does not reach there.
func (t *Table) Lookup(vaddr uint64) (rule record.UnwindRule, ok bool) {
	b := (vaddr - t.Base) / record.UnwindBlockBytes
	if vaddr < t.Base || b+1 >= uint64(len(t.Index)) {
		return record.UnwindRule{}, false
	}
	rows := t.Rows[t.Index[b]:t.Index[b+1]]
	n := sort.Search(len(rows), func(i int) bool { return rows[i].Offset() > vaddr%record.UnwindBlockBytes })
	return t.Rules[t.Rows[int(t.Index[b])+n-1].Rule()], true
}

// Each calls yield with the first address and the rule of every row until it
// returns false.
func (t *Table) Each(yield func(vaddr uint64, r record.UnwindRule) bool) {
	for b := 0; b+1 < len(t.Index); b++ {
		block := t.Base + uint64(b)*record.UnwindBlockBytes
		for _, r := range t.Rows[t.Index[b]:t.Index[b+1]] {
			if !yield(block+r.Offset(), t.Rules[r.Rule()]) {
				return
			}
		}
	}
}

// Limit returns the first virtual address behind the table.
func (t *Table) Limit() uint64 {
	return t.Base + record.UnwindBlockBytes*uint64(max(len(t.Index), 1)-1)
}

// Bytes returns the memory that the rules, the index and the rows take.
func (t *Table) Bytes() int {
	held := t.Held()
	return held.Heap + held.Mapped
}
