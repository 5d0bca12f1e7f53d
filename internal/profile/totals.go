package profile

import (
	"iter"
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Total is what the samples of one entry add up to.
type Total struct {
	Process  uint64
	Set      *labels.Set // nil: no labels
	State    record.ThreadState
	Samples  int
	OffCPUNs int64 // of absences: what they count together, at most math.MaxInt64
}

// Totals yields what was added since the last Reset, by entry: a process, set and state
// come once for each of their stacks, links, threads and CPUs.
func (b *Builder) Totals() iter.Seq[Total] {
	return func(yield func(Total) bool) {
		totals := make([]Total, len(b.entries))
		for i, entry := range b.sampleEntries {
			t := &totals[entry]
			t.Samples++
			if len(b.sampleValues) > 0 {
				t.OffCPUNs = addSaturated(t.OffCPUNs, b.sampleValues[i])
			}
		}
		for i := range totals {
			k := &b.entries[i]
			totals[i].Process, totals[i].Set, totals[i].State = k.process, k.set, k.state
			if !yield(totals[i]) {
				return
			}
		}
	}
}

// addSaturated adds what is not negative.
func addSaturated(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}
