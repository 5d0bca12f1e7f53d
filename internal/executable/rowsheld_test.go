//go:build linux

package executable

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// heldTables notes what the account has for rows when they are loaded.
type heldTables struct {
	*fakeTables
	memory *budget.Memory
	held   []int64
	loaded []int64 // what the rows take
}

func (h *heldTables) AddUnwindTable(t *record.UnwindTable) (record.TableID, error) {
	h.held = append(h.held, h.memory.Part(budget.OfRows))
	h.loaded = append(h.loaded, int64(4*len(t.Index)+4*len(t.Rows)))
	return h.fakeTables.AddUnwindTable(t)
}

// Rows count while they are loaded, and no longer.
func TestRowsAreHeld(t *testing.T) {
	f := newRowsFake(t, nil)
	f.opts.Memory = budget.NewMemory(64 << 20)
	tables := &heldTables{fakeTables: f.rec, memory: f.opts.Memory}
	f.opts.Tables = tables
	_, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	n := f.buildAll()
	require.Len(t, tables.held, n)
	for i := range tables.held {
		require.InDelta(t, tables.loaded[i], tables.held[i], 64<<10, "and some rules")
		require.GreaterOrEqual(t, tables.held[i], tables.loaded[i]-1)
	}
	require.Zero(t, f.opts.Memory.Used())
}

// A build that would have others give way is refused for a while.
func TestRowsWithoutMemory(t *testing.T) {
	f := newRowsFake(t, nil)
	memory := budget.NewMemory(64 << 20)
	f.opts.Memory = memory
	others := int(memory.Limit()/8*7/budget.HeapWeight) - 10<<10
	memory.Add(budget.OfBatches, others)
	require.Less(t, memory.Pressure(), budget.Scarce)
	used := memory.Used()
	_, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	n := f.buildAll()
	require.NotZero(t, n)
	require.Empty(t, f.rec.tables)
	require.EqualValues(t, n, f.Stats().Refused)
	require.Zero(t, f.Stats().Failed)
	require.Equal(t, used, memory.Used())
	memory.Add(budget.OfBatches, -others)
	f.released++
	f.ask(cmd.Process.Pid)
	require.Zero(t, f.buildAll(), "a table that has left the kernel gives no memory back")
	f.clock.Add(int64(retryRows))
	f.ask(cmd.Process.Pid)
	require.Equal(t, n, f.buildAll())
	require.Len(t, f.rec.tables, n)
	require.Zero(t, memory.Used())
}

// What is outside of Go's heap counts once. What it takes to follow code is a share of all at most.
func TestRowsWeight(t *testing.T) {
	h := rowsHeld{memory: budget.NewMemory(64 << 20)}
	h.set(unwind.Held{Heap: 1000, Mapped: 600})
	require.EqualValues(t, 2*1000+600, h.memory.Part(budget.OfRows))
	require.NoError(t, h.hold(unwind.Held{Mapped: 56<<20 - 2}))
	require.ErrorIs(t, h.hold(unwind.Held{Mapped: 56 << 20}), errMemory)
	require.EqualValues(t, 56<<20-2, h.memory.Part(budget.OfRows), "as before")
	h.memory.Add(budget.OfBatches, 60<<20)
	require.NoError(t, h.hold(unwind.Held{Mapped: 1 << 20}), "less is no question")
	h.release()
	require.Zero(t, h.memory.Part(budget.OfRows))

	require.Equal(t, unwind.DefaultCodeBytes, codeBytes(nil))
	require.Equal(t, unwind.DefaultCodeBytes, codeBytes(budget.NewMemory(256<<20)))
	small := codeBytes(budget.NewMemory(64 << 20))
	require.Greater(t, small, 512<<10)
	require.LessOrEqual(t, small*budget.HeapWeight*unwind.CodeHeldBytes, 32<<20)
	require.Equal(t, 1, codeBytes(budget.NewMemory(1)))
}
