//go:build amd64 || arm64

package customlabelsreceiver

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// budgets are the limits of one receiver that all of its parts share.
type budgets struct {
	memory *budget.Memory
	cpu    *budget.CPU
	limits limitSizes
}

// limitSizes are what is used up is compared with.
type limitSizes struct{ memory, bpfMaps int64 }

func newBudgets(cfg *Config) budgets {
	return budgets{
		memory: budget.NewMemory(cfg.MaxMemoryBytes),
		cpu:    budget.NewCPU(cfg.MaxBackgroundCPU, func() int64 { return int64(monotonicNow()) }),
		limits: limitSizes{int64(cfg.MaxMemoryBytes), int64(cfg.MaxBPFMapBytes)},
	}
}

// spend does some work and counts its CPU time.
func (b *budgets) spend(w budget.Work, work func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := clockNow(unix.CLOCK_THREAD_CPUTIME_ID)
	work()
	b.cpu.Spend(w, time.Duration(clockNow(unix.CLOCK_THREAD_CPUTIME_ID)-began))
}

// snapshotLimits tells how near the limits of the whole receiver are.
func (p *samplingPipeline) snapshotLimits(s *snapshot, table *process.Stats) {
	memory, cpu := p.budgets.memory, p.budgets.cpu.Use()
	for part := range s.memory {
		s.memory[part] = memory.Part(budget.Part(part))
	}
	s.bpfMapBytes = int64(p.sampler.MapBytes())
	s.limitUsed = [numLimits]float64{
		limitMemory:        float64(memory.Used()) / float64(p.budgets.limits.memory),
		limitBPFMaps:       float64(s.bpfMapBytes) / float64(p.budgets.limits.bpfMaps),
		limitBackgroundCPU: cpu.Load,
	}
	for w := range s.background {
		s.background[w] = cpu.Spent[w].Seconds()
		s.limitActions[limitWorkDelayed] += cpu.Delayed[w]
	}
	s.backgroundLeft[budget.Processes], s.backgroundLeft[budget.Rows] = int64(table.Due), int64(table.RowsWaiting)
	for a := range p.counts.limits {
		s.limitActions[a] += p.counts.limits[a].Load()
	}
	s.limitActions[limitFilesDropped] += int64(table.FilesDropped)
	s.limitActions[limitProcessesReduced] += int64(table.Reduced)
}

// startError says which keys to change when the BPF maps do not fit: how much some take
// depends on the number of CPUs.
func startError(cfg *Config, ring int, err error) error {
	if errors.Is(err, bpf.ErrMapBytes) {
		return fmt.Errorf("start sampler: max_bpf_map_bytes %d is too low on this host: raise it, or lower max_unwind_bytes (%d), ring_buffer_bytes (%d) or off_cpu_ring_buffer_bytes (%d): %w",
			cfg.MaxBPFMapBytes, tableBytes(cfg), ring, offCPURingBytes(cfg), err)
	}
	return fmt.Errorf("start sampler: %w", err)
}
