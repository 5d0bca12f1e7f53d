//go:build amd64 || arm64

package customlabelsreceiver

import (
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

// lossInterval is how often events of processes that found no room are looked for.
const lossInterval = time.Second

// followLosses makes up for events of processes that were lost: the processes that run are
// listed again, and those that are known are looked at. Both are done within two seconds
// of the loss, unless the machine has no time for it.
func (p *samplingPipeline) followLosses() {
	tick := time.NewTicker(lossInterval)
	defer tick.Stop()
	madeUpFor := uint64(0)
	for {
		select {
		case <-p.stopped:
			return
		case <-tick.C:
		}
		lost := p.counts.bpfCounters(p.sampler).EventsDropped
		if lost == madeUpFor {
			continue
		}
		if err := p.sampler.Scan(func(ev bpf.ProcessEvent) { p.table.HandleEvent(processEvent(ev)) }); err != nil {
			p.log.Warn("Events of processes were lost, and the processes cannot be listed again.", zap.Error(err))
			continue
		}
		p.table.HandleEvent(process.Event{Kind: process.EventsLost})
		madeUpFor = lost
	}
}
