//go:build linux

package process

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// TestConcurrent lets short processes come and go while samples, events,
// batches and the periodic pass meet them; at the end, nothing is left.
func TestConcurrent(t *testing.T) {
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: 20 * time.Millisecond, MaxDescriptors: 4, MaxFiles: 4})
	stop := make(chan struct{})
	var background, processes sync.WaitGroup
	background.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				table.EndInterval()
				table.HandleEvent(record.Event{Kind: record.EventMappingsLost})
				table.Stats()
			}
		}
	})
	for worker := range 4 {
		processes.Go(func() {
			for i := range 15 {
				shortLife(t, table, uint64(i), worker%2 == 0)
			}
		})
	}
	processes.Wait()
	close(stop)
	background.Wait()
	eventually(t, "all taken back", func() bool {
		table.EndInterval()
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.sources) == 0 && table.Stats().Processes == 0
	})
	eventually(t, "all descriptors closed", func() bool { table.EndInterval(); return table.Stats().Descriptors == 0 })
}

// shortLife runs a shell that execs; the exit event may be lost.
func shortLife(t *testing.T, table *Table, n uint64, loseExit bool) {
	cmd := exec.Command("sh", "-c", fmt.Sprintf("exec sleep 0.0%d", n%5+1))
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	pid := cmd.Process.Pid
	stat, err := procfs.FS{}.Stat(pid)
	if err != nil {
		t.Error(err)
		return
	}
	id := record.ProcessID{TGID: uint32(pid), StartNs: stat.StartTicks * 1e7, ExecID: 1}
	table.HandleEvent(record.Event{Kind: record.EventFork, Process: id, PID: pid, TimeNs: uint64(budget.Clock(unix.CLOCK_MONOTONIC))})
	first := table.Lookup(id, pid, nobody, []byte("sh"))
	table.HandleEvent(record.Event{Kind: record.EventMapping, PID: pid})
	id.ExecID++
	table.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: pid, TimeNs: uint64(budget.Clock(unix.CLOCK_MONOTONIC)), Path: "/bin/sleep"})
	p := table.Lookup(id, pid, nobody, nil)
	for range 20 {
		table.HandleEvent(record.Event{Kind: record.EventMapping, PID: pid})
		for _, m := range p.Info().Mappings {
			if m.File != nil {
				if f, _, err := m.File.Open(); err == nil {
					f.Close()
				}
			}
		}
		table.Lookup(first.ID(), pid, nobody, nil)
		table.Process(p.Handle())
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !loseExit {
		table.HandleEvent(record.Event{Kind: record.EventExit, Process: id, PID: pid})
	}
	require.Equal(t, pid, p.Info().PID)
}
