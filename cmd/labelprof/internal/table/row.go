// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"slices"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// row is what is known of one combination of values; without values, of all others.
type row struct {
	values    []value
	hits      int64
	cpuNs     int64
	offCPUNs  int64
	functions map[functionKey]int64 // self time in ns
	waits     map[functionKey]int64 // time off the CPU in ns
}

func newRow(values []value) row {
	return row{values: values, functions: map[functionKey]int64{}, waits: map[functionKey]int64{}}
}

// sorted returns the rows, the most CPU time first, then the most time off the CPU.
func (t *Table) sorted() []*row {
	rows := make([]*row, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.cpuNs, a.cpuNs), cmp.Compare(b.offCPUNs, a.offCPUNs), slices.CompareFunc(a.values, b.values, compareValues))
	})
	return rows
}

// restOf sums up rows that are not shown.
func restOf(hidden []*row, overflow row) row {
	rest := row{hits: overflow.hits, cpuNs: overflow.cpuNs, offCPUNs: overflow.offCPUNs}
	for _, r := range hidden {
		rest.hits += r.hits
		rest.cpuNs = sample.AddNs(rest.cpuNs, r.cpuNs)
		rest.offCPUNs = sample.AddNs(rest.offCPUNs, r.offCPUNs)
	}
	return rest
}
