//go:build linux && (amd64 || arm64)

package bench

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup/wakeuptest"
)

// tableMemory has a process table of its own read all processes of the host, and returns
// how many these are, the heap that they take, and what the table says that they take. What
// the collector's resident memory adds to that depends on when garbage is collected.
func tableMemory(t *testing.T) (processes int, heap, told int64) {
	t.Helper()
	memory := budget.NewMemory(1 << 40)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table := process.NewTable(process.Options{Publisher: &announced{missing: -1}, RescanInterval: time.Hour, Memory: memory, Alarm: wakeuptest.Alarm(t)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if st, err := (procfs.FS{}).Stat(pid); err == nil {
			id := record.ProcessID{TGID: uint32(pid), StartNs: st.StartTicks * (1e9 / procfs.TicksPerSecond)}
			table.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: pid})
		}
	}
	running.Go(func() { table.Run(ctx) })
	require.Eventually(t, func() bool { return table.Stats().Queued == 0 }, attachTimeout, 10*time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	told = (memory.Part(budget.OfProcesses) + memory.Part(budget.OfFiles)) / 2 // without what the garbage collector needs
	processes = table.Stats().Processes
	return processes, int64(after.HeapAlloc) - int64(before.HeapAlloc), told
}
