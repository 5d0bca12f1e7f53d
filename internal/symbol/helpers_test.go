package symbol

import (
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// newTable reads the functions of a file.
func newTable(f *elffile.File, maxBytes int) (*Table, error) {
	fs := &functions{table: &Table{}}
	l := loader{src: &opener{}, tables: newRoom(tableLimits()), maxBytes: maxBytes}
	fs, err := l.fill(fs, fs, f.Functions)
	return fs.table, err
}

// Lookup is lookup with all time to demangle the name.
func (t *Table) Lookup(vaddr uint64) (name string, ok bool) {
	name, _, ok = t.lookup(vaddr, namer{})
	return name, ok
}

// compactAll is compactUpTo of all functions.
func compactAll[T any](owner *T, e *entries) compact {
	c, _ := compactUpTo(owner, e, math.MaxInt)
	return c
}
