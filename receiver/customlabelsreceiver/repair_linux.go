//go:build amd64 || arm64

package customlabelsreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// repairInterval is how often CPUs that came or went are looked for, and events of
// processes that found no room.
const repairInterval = time.Second

// repair follows what no event tells of.
func (p *samplingPipeline) repair() {
	tick := time.NewTicker(repairInterval)
	defer tick.Stop()
	var r repairs
	for {
		select {
		case <-p.stopped:
			return
		case <-tick.C:
		}
		p.followCPUs(&r)
		p.followLosses(&r)
	}
}

// repairs is what was found before.
type repairs struct {
	cpus      string // what is wrong with CPUs, if something is
	madeUpFor uint64 // lost events
}

func (p *samplingPipeline) followCPUs(r *repairs) {
	err := p.sampler.UpdateCPUs()
	switch {
	case err == nil && r.cpus != "":
		r.cpus = ""
		p.report(nil)
	case err != nil && err.Error() != r.cpus:
		r.cpus = err.Error()
		p.degraded("some CPUs are not sampled", err)
	}
}

// followLosses makes up for events of processes that were lost: the processes that run are
// listed again, and those that are known are looked at. Both are done within two seconds
// of the loss, unless the machine has no time for it.
func (p *samplingPipeline) followLosses(r *repairs) {
	lost := p.counts.bpfCounters(p.sampler).EventsDropped
	if lost == r.madeUpFor {
		return
	}
	if err := p.sampler.Scan(func(ev bpf.ProcessEvent) { p.table.HandleEvent(processEvent(ev)) }); err != nil {
		p.log.Warn("Events of processes were lost, and the processes cannot be listed again.", zap.Error(err))
		return
	}
	p.table.HandleEvent(process.Event{Kind: process.EventsLost})
	r.madeUpFor = lost
}
