//go:build linux && (amd64 || arm64)

package pipeline

import (
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/offcpu"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// offCPUShare of BatchOptions.MaxBytes is what the records of threads that are off the CPU may take.
const offCPUShare = 2

// offCPUReader reads switches, and joins a thread's leaving of the CPU with its return: those
// that were off it for long enough are samples.
type offCPUReader struct {
	source  *bpf.OffCPU
	threads *offcpu.Table
	weight  float64 // of a nanosecond
	minimum uint64  // ns
	trim    *kernelTrim
	sw      bpf.Switch
	rec     bpf.Record
}

// openOffCPU loads the program of switches.
func openOffCPU(o *Options, sampler *bpf.Sampler) (*bpf.OffCPU, error) {
	return sampler.OffCPU(bpf.OffCPUConfig{
		Threshold:       o.OffCPU.Threshold,
		RingBufferBytes: o.OffCPU.RingBytes,
		UserShare:       o.Ring.UserShare,
	})
}

func newOffCPUReader(o *Options, from *bpf.OffCPU, fs procfs.FS) *offCPUReader {
	return &offCPUReader{
		source:  from,
		threads: offcpu.NewTable(o.Batches.MaxBytes / offCPUShare),
		weight:  1 / o.OffCPU.Threshold,
		minimum: uint64(o.OffCPU.Minimum),
		trim:    &kernelTrim{fs: fs},
	}
}

func (r *offCPUReader) take(to *aggregator) (uint64, error) {
	sw := &r.sw
	if err := r.source.Read(sw); err != nil {
		return 0, err
	}
	if !sw.Back {
		r.leave(to)
		to.offCPUBytes = r.threads.Bytes()
		return sw.LeftNs, nil
	}
	raw, ok := r.threads.Return(sw.Thread, sw.LeftNs)
	to.offCPUBytes = r.threads.Bytes()
	if !ok {
		return sw.BackNs, nil // it was given up, and counted as that
	}
	took := sw.BackNs - min(sw.LeftNs, sw.BackNs)
	if took < r.minimum {
		to.stream.filter(FilterBelowMinimum, 1)
		return sw.BackNs, nil
	}
	if err := r.rec.Parse(raw); err != nil {
		return 0, err
	}
	r.rec.KernelFrames = r.trim.trim(r.rec.KernelFrames)
	to.add(&r.rec, timeOff{sw.BackNs, weighted(took, r.weight)})
	return sw.BackNs, nil
}

// weighted is what a time off the CPU counts: those that were not looked at are made up for
// by those that were. It is at most what can be summed up.
func weighted(ns uint64, weight float64) int64 {
	const most = 1 << 62
	return int64(math.Round(min(float64(ns)*weight, most)))
}

func (r *offCPUReader) leave(to *aggregator) {
	rec, sw := &r.rec, &r.sw
	pressure := to.memory.Pressure()
	if pressure >= budget.Tight {
		r.threads.ForgetFree()
	}
	if rec.Parse(sw.Raw) != nil {
		to.stream.drop(DropMalformed, 1)
		return
	}
	// Now, and not only when it is back: what has to be found out about its process
	// is known by then.
	proc := to.table.Lookup(rec.Process, int(rec.PID), rec.UID, rec.Comm)
	if to.filtered(proc) {
		return // what comes back is not known then
	}
	if pressure == budget.Full && !r.spares(to, rec.UID) {
		to.stream.drop(DropNoMemory, 1)
		return
	}
	to.table.Sampled(proc, int64(rec.TimeNs))
	r.threads.Leave(rec.UID, sw.Thread, sw.LeftNs, sw.Raw)
	lost := r.threads.Counts()
	to.stream.dropped[DropEvicted].Store(int64(lost.Evicted))
	to.stream.dropped[DropReturnLost].Store(int64(lost.ReturnLost))
}

// spares reports whether a user has so little in the batch, and of threads that are off the CPU,
// that a further one is kept in any case.
func (r *offCPUReader) spares(to *aggregator, uid uint32) bool {
	return to.batch.spares(uid) && r.threads.UserBytes(uid) < sparedBytes
}

func (r *offCPUReader) end(of *stream) { of.drop(DropUnfinished, int64(r.threads.Len())) }
