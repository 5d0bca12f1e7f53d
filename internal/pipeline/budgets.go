//go:build linux && (amd64 || arm64)

package pipeline

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
)

// budgets are the limits of one pipeline that all of its parts share.
type budgets struct {
	memory *budget.Memory
	cpu    *budget.CPU
	limits limitSizes
}

// limitSizes are what is used up is compared with.
type limitSizes struct{ memory, bpfMaps int64 }

func newBudgets(o *LimitOptions) budgets {
	return budgets{
		memory: budget.NewMemory(o.MemoryBytes),
		cpu:    budget.NewCPU(o.BackgroundCPU, func() int64 { return int64(monotonicNow()) }),
		limits: limitSizes{int64(o.MemoryBytes), int64(o.BPFMapBytes)},
	}
}

// threadTime is the CPU time of this thread, in ns.
func threadTime() int64 { return budget.Clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// spend does some work and counts its CPU time.
func (b *budgets) spend(w budget.Work, work func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	work()
	b.cpu.Spend(w, time.Duration(threadTime()-began))
}
