//go:build linux

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// When memory is short, a process that takes no more than before keeps what it has; one
// that takes more is reduced, once, and stays so.
func TestMemoryReducesGrowth(t *testing.T) {
	memory := budget.NewMemory(1 << 20)
	memory.Add(budget.OfProcesses, 1<<20)
	f := newFake(t, func(o *Options) { o.Memory = memory })
	p := &Process{}
	p.load.info = &Info{Mappings: make([]ExecMapping, 10)}
	for _, c := range []struct{ mappings, kept, reduced int }{{10, 10, 0}, {9, 9, 0}, {11, 0, 1}, {9, 0, 1}} {
		info := Info{Mappings: make([]ExecMapping, c.mappings)}
		f.reduce(p, &info)
		require.Len(t, info.Mappings, c.kept)
		require.EqualValues(t, c.reduced, f.Stats().Reduced)
	}
	memory.Add(budget.OfProcesses, -1<<20)
	info := Info{Mappings: make([]ExecMapping, 11)}
	f.reduce(p, &info)
	require.Len(t, info.Mappings, 11, "there is room again")
}
