//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
)

// drain reads a stream until its source is drained or closed, and aggregates its samples
// into batches. Everything in it belongs to its one goroutine.
type drain struct {
	aggregator
	reader reader
	broken func(error) // told why the source cannot be read any more
}

// A reader takes what a source has next.
type reader interface {
	// take reads once, passes a sample on to the aggregator where that makes one whole, and
	// returns when it was taken, CLOCK_MONOTONIC. The errors are those of bpf.Sampler.Read.
	take(to *aggregator) (uint64, error)
	// end tells that there will be no more.
	end(of *stream)
}

func (d *drain) run() {
	d.batch = d.output.newBatch(d.stream)
	var idle uint64 // when there was nothing to read last
	for {
		now, err := d.reader.take(&d.aggregator)
		var malformed *bpf.FormatError
		read := now
		switch {
		case err == nil:
		case errors.Is(err, bpf.ErrIdle):
			// This clock is read after the look that has found nothing, maybe long after: a CPU
			// may have been waited for. The last one was read before.
			now = monotonicNow()
			read, idle = max(d.stream.readNs.Load(), idle), now
		case errors.As(err, &malformed):
			d.stream.drop(DropMalformed, 1)
			continue
		default: // drained, or closed without having been drained, or broken
			if !errors.Is(err, bpf.ErrDrained) && !errors.Is(err, bpf.ErrClosed) {
				d.broken(err)
			}
			d.reader.end(d.stream)
			d.release(func(*awaitingSample) bool { return true })
			d.handOver()
			return
		}
		d.stream.readNs.Store(read)
		d.settle(now)
		d.handOverAt(now)
	}
}

// cpuReader reads samples of CPU time, each of which is whole.
type cpuReader struct {
	sampler *bpf.Sampler
	record  bpf.Record
}

func (r *cpuReader) take(to *aggregator) (uint64, error) {
	if err := r.sampler.Read(&r.record); err != nil {
		return 0, err
	}
	to.add(&r.record, timeOff{})
	return r.record.TimeNs, nil
}

func (*cpuReader) end(*stream) {}
