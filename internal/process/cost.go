//go:build linux

package process

// What is spent on one process is bounded to a share of a worker's time: one in so
// many. CPU time is the process's doing, by its size. Other time passes because the
// machine is busy, or because the process has its memory or files served slowly; in
// order that a busy machine does not make us late as well, it counts less.
const (
	waitShare        = 10 // of all time
	costShare        = 50 // of CPU time, for looks because of mapping events
	contextCostShare = 20 // for looks at a context, which is waited for
	retryCostShare   = 10 // for retries, which are few
)

// cost is what a look at a process has taken, in ns.
type cost struct{ cpu, wall int64 }

// stopwatch measures a cost. The goroutine must stay on its OS thread meanwhile.
type stopwatch struct {
	t              *Table
	cpuNs, beganNs int64
}

func (t *Table) startWatch() stopwatch { return stopwatch{t, t.opts.cpuTime(), t.now()} }

func (w stopwatch) stop() cost {
	wall := w.t.now() - w.beganNs
	return cost{min(w.t.opts.cpuTime()-w.cpuNs, wall), wall}
}

// gap returns how long to leave the process alone.
func (c cost) gap(costShare int64) int64 {
	return max(costShare*c.cpu, waitShare*c.wall)
}
