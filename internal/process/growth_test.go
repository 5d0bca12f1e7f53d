//go:build linux

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
)

// When memory is short, a process that takes no more than before keeps what it has; one
// that takes more is reduced, once, and stays so.
func TestMemoryReducesGrowth(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	memory.Add(budget.OfProcesses, 1<<20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	p := f.Lookup(image1, 0, nobody, nil)
	p.worker().read.info = &Info{Mappings: make([]executable.Mapping, 10)}
	for _, c := range []struct{ mappings, kept, reduced int }{{10, 10, 0}, {9, 9, 0}, {11, 0, 1}, {9, 0, 1}} {
		require.Equal(t, c.kept, reducedTo(f, p, c.mappings))
		require.EqualValues(t, c.reduced, f.Stats().Reduced)
	}
	memory.Add(budget.OfProcesses, -1<<20)
	require.Equal(t, 11, reducedTo(f, p, 11), "there is room again")
}

// reducedTo is how many of a process's mappings are kept of a look.
func reducedTo(f *fake, p *Process, mappings int) int {
	l := &look{wanted: true, read: p.worker().read, info: Info{Mappings: make([]executable.Mapping, mappings)}}
	d := decide(l, f.situation(p, f.short(0)))
	f.apply(p, workReread, l, &d)
	p.worker().read.info.Mappings = make([]executable.Mapping, 10)
	return len(l.info.Mappings)
}
