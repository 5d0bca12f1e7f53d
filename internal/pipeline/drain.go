//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
)

// drain reads samples until the sampler is drained or closed and aggregates
// them into batches. Everything in it belongs to its one goroutine.
type drain struct {
	aggregator
	sampler *bpf.Sampler
}

func (d *drain) run() {
	d.batch = d.exporter.newBatch(d.lane)
	var rec bpf.Record
	for {
		err := d.sampler.Read(&rec)
		var malformed *bpf.FormatError
		switch {
		case err == nil:
			d.add(&rec, absenceEnd{})
			d.settle(rec.TimeNs)
			d.handOverAt(rec.TimeNs)
		case errors.Is(err, bpf.ErrIdle):
			now := monotonicNow()
			d.settle(now)
			d.handOverAt(now)
		case errors.As(err, &malformed):
			d.counts.dropped[DropMalformed].Add(1)
		default: // drained, or closed without having been drained
			d.release(len(d.awaiting.samples))
			d.handOver()
			return
		}
	}
}
