//go:build linux && (amd64 || arm64)

package pipeline

import (
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// aggregator decodes samples and puts them into the batches of a stream. It belongs
// to one goroutine.
type aggregator struct {
	table  *process.Table
	output *output
	stream *stream
	counts *counts

	interval time.Duration
	maxBytes int
	labels   *labels.Channel
	registry *labels.Registry
	// endNs is when the interval of the batch and of the labels' budgets ends, CLOCK_MONOTONIC.
	endNs        uint64
	perContainer bool
	clockDueNs   int64 // of the sample with which the clock is looked at again
	profiles     bool  // wanted, and so stacks and links
	functions    bool  // of language runtimes are wanted
	batch        *batch
	sample       profile.Sample
	awaiting     awaiting

	memory                  *budget.Memory
	labelsHeld, waitingHeld weight
	offCPUBytes             int // of threads that are off the CPU
}

func newAggregator(o *Options, registry *labels.Registry, out *output, to *stream) aggregator {
	return aggregator{
		table:    out.table,
		output:   out,
		stream:   to,
		counts:   out.counts,
		interval: o.ReportInterval,
		maxBytes: o.Batches.MaxBytes,
		labels:   registry.NewChannel(),
		registry: registry,
		endNs:    monotonicNow() + uint64(o.ReportInterval),
		memory:   out.memory,

		perContainer: o.Labels.PerContainer,
		profiles:     out.deliverer != nil,
		functions:    o.runtimes() != [record.NumRuntimes]bool{},
	}
}

// timeOff says how long a thread was off the CPU; zero of a sample of CPU time.
type timeOff struct {
	endNs  uint64 // CLOCK_MONOTONIC
	weight int64  // ns that it counts
}

// add takes a sample, and how long the thread was off the CPU after it.
func (d *aggregator) add(rec *bpf.Record, end timeOff) {
	proc := d.table.Lookup(rec.Process, int(rec.PID), rec.Comm)
	if d.filtered(proc) {
		return
	}
	if d.memory.Pressure() == budget.Full && !d.batch.spares(rec.UID) {
		d.stream.drop(DropNoMemory, 1)
		return
	}
	d.table.Sampled(proc, int64(rec.TimeNs))
	if rec.Presumed && !d.confirmed(proc, rec, end) {
		return
	}
	decoded := d.decode(proc, rec)
	if decoded.Counts[labels.AnomalyUnknownKey] > 0 {
		d.stream.source.Hurry()
		if d.table.AwaitContext(proc, int64(rec.TimeNs)) && d.awaiting.add(proc, rec, end, true) {
			return
		}
		decoded = d.decode(proc, rec) // by names that may have come meanwhile
	}
	d.aggregate(proc, rec, end, decoded)
}

// unknownContainer is that of a process of which nothing is known yet: it takes nothing from the
// user's processes outside of containers, nor from those in any that is known.
const unknownContainer = "unknown"

// decode gives what the labels of a sample mean, and whose they are.
func (d *aggregator) decode(proc *process.Process, rec *bpf.Record) *labels.Decoded {
	info := proc.Info()
	from := labels.Origin{User: labels.User{UID: rec.UID}}
	if info.Loaded {
		from.Executable = info.Path // before, it is what exec was asked for
	}
	if d.perContainer {
		from.Container = info.ContainerID
		if from.Executable == "" {
			from.Container = unknownContainer
		}
	}
	return d.labels.Decode(from, info.Keys(int64(rec.TimeNs)), rec.Labels)
}

// clockGap is how far samples are apart, by CLOCK_MONOTONIC, between which the clock is looked at.
const clockGap = int64(time.Millisecond)

// checkClock begins a new batch if the clock was set since this one began. It is told the time
// that is emitted: a thread may have left the CPU long before it was back.
func (d *aggregator) checkClock(timeNs int64) {
	if timeNs < d.clockDueNs {
		return
	}
	d.clockDueNs = timeNs + clockGap
	if d.batch.clockSet(time.Now()) {
		d.handOver()
		d.batch = d.output.newBatch(d.stream)
	}
}

// filtered reports whether a process is known not to be wanted, and counts its sample
// then. BPF may not know yet, or have no room for it.
func (d *aggregator) filtered(proc *process.Process) bool {
	if proc.Info().Verdict != process.VerdictFiltered {
		return false
	}
	d.stream.filter(FilterTarget, 1)
	return true
}

func (d *aggregator) aggregate(proc *process.Process, rec *bpf.Record, end timeOff, decoded *labels.Decoded) {
	d.counts.countRecord(rec, decoded)
	d.registry.Count(decoded)
	at := max(rec.TimeNs, end.endNs)
	d.checkClock(int64(at))
	of := d.batch.user(rec.UID)
	if handle := proc.Handle(); of.processes[handle] == nil {
		d.table.Hold(proc)
		of.processes[handle] = proc
	}
	d.sample = profile.Sample{
		Process:      proc.Handle(),
		Epoch:        proc.EpochAt(rec.TimeNs),
		TimeUnixNano: at + d.batch.clockOffset,
		OffCPUNs:     end.weight,
		State:        rec.State,
		TID:          rec.TID,
		Comm:         rec.Comm,
		CPU:          rec.CPU,
		KernelFrames: rec.KernelFrames,
		UserFrames:   rec.UserFrames,
		Set:          decoded.Set,
		Link:         decoded.Link,
		Sampled:      sampled(proc.Info().Context, decoded),
		KernelStack:  rec.KernelStack,
		UserStack:    rec.UserStack,
	}
	if !d.profiles { // only what metrics tell apart
		s := &d.sample
		s.KernelFrames, s.UserFrames, s.KernelStack, s.UserStack = nil, nil, record.OutcomeNone, record.OutcomeNone
		s.Link, s.Sampled, s.Epoch = labels.Link{}, profile.SampledUnknown, 0
	}
	if d.batch.add(of, &d.sample) && d.functions && d.table.WantFunctions(proc, rec.UID, d.sample.UserFrames) {
		d.stream.source.Hurry() // others may be as new, and gone soon
	}
}

// flagSampled is a W3C trace flag.
const flagSampled = 1

// sampled tells whether a trace may have been recorded. Only the merged OTEP has
// the flags; in records of its prototypes the byte is reserved, and labels have none.
// Writers for Node.js have the flags by now, but began without: 0 says nothing there.
func sampled(c *processctx.Context, d *labels.Decoded) profile.Sampled {
	if c == nil || d.Promoted {
		return profile.SampledUnknown
	}
	set := d.Flags&flagSampled != 0
	switch {
	case set && (c.Schema == processctx.SchemaTLS || c.Schema.NodeJS()):
		return profile.SampledYes
	case c.Schema == processctx.SchemaTLS:
		return profile.SampledNo
	}
	return profile.SampledUnknown
}

// handOverAt hands the batch over when its interval has passed at the given
// time (CLOCK_MONOTONIC). When it has grown too large before, the user who has most of
// it has to hand over early; the others do not notice.
func (d *aggregator) handOverAt(now uint64) {
	d.weigh()
	pressure := d.memory.Pressure()
	full := false
	if d.batch.full(d.maxBytes, d.batchBytes(pressure)) {
		if d.batch.bytes < d.maxBytes {
			d.counts.limits[LimitBatchesEarly].Add(1)
		}
		full = !d.handOverLargest()
	}
	if pressure >= budget.Scarce && d.labels.ReadBytes() >= minForgotten {
		d.labels.ForgetReads()
	}
	ended := now >= d.endNs
	if !full && !ended {
		return
	}
	// Not with each batch that is too large: what fills it is no reason for new budgets. And
	// not before it is handed over: equal sets of one batch must be one set.
	if ended {
		d.releaseLabels()
	}
	d.handOver()
	if ended {
		d.labels.EndInterval(now)
		// The reader wakes up some time after the end, which does not put off the next.
		if d.endNs += uint64(d.interval); d.endNs <= now {
			d.endNs = now + uint64(d.interval)
		}
	}
	d.batch = d.output.newBatch(d.stream)
}

// handOverLargest hands over what the user has who has most; false if there are too
// many users to find out.
func (d *aggregator) handOverLargest() bool {
	early := d.batch.split()
	if early != nil {
		d.output.enqueue(early)
	}
	return early != nil
}

func (d *aggregator) handOver() {
	d.output.enqueue(d.batch)
	d.batch = nil
}
