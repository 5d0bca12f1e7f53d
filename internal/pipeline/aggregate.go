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
	profiles     bool  // profiles are wanted, and so stacks and links
	functions    bool  // functions of language runtimes are wanted
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
func (a *aggregator) add(rec *bpf.Record, end timeOff) {
	proc := a.table.Lookup(rec.Process, int(rec.PID), rec.UID, rec.Comm)
	if a.filtered(proc) {
		return
	}
	if a.memory.Pressure() == budget.Full && !a.batch.spares(rec.UID) {
		a.stream.drop(DropNoMemory, 1)
		return
	}
	a.table.Sampled(proc, int64(rec.TimeNs))
	if rec.Presumed && !a.confirmed(proc, rec, end) {
		return
	}
	decoded := a.decode(proc, rec)
	if decoded.Counts[labels.AnomalyUnknownKey] > 0 {
		a.stream.source.Hurry()
		if a.table.AwaitContext(proc, int64(rec.TimeNs)) && a.awaiting.add(proc, rec, end, true) {
			return
		}
		decoded = a.decode(proc, rec) // by names that may have come meanwhile
	}
	a.aggregate(proc, rec, end, decoded)
}

// unknownContainer is that of a process of which nothing is known yet: it takes nothing from the
// user's processes outside of containers, nor from those in any that is known.
const unknownContainer = "unknown"

// decode gives what the labels of a sample mean, and whose they are.
func (a *aggregator) decode(proc *process.Process, rec *bpf.Record) *labels.Decoded {
	info := proc.Info()
	from := labels.Origin{User: labels.User{UID: rec.UID}}
	if info.Loaded {
		from.Executable = info.Path // before, it is what exec was asked for
	}
	if a.perContainer {
		from.Container = info.ContainerID
		if from.Executable == "" {
			from.Container = unknownContainer
		}
	}
	return a.labels.Decode(from, info.Keys(int64(rec.TimeNs)), rec.Labels)
}

// clockGap is how far samples are apart, by CLOCK_MONOTONIC, between which the clock is looked at.
const clockGap = int64(time.Millisecond)

// checkClock begins a new batch if the clock was set since this one began. It is told the time
// that is emitted: a thread may have left the CPU long before it was back.
func (a *aggregator) checkClock(timeNs int64) {
	if timeNs < a.clockDueNs {
		return
	}
	a.clockDueNs = timeNs + clockGap
	if a.batch.clockSet(time.Now()) {
		a.handOver()
		a.batch = a.output.newBatch(a.stream)
	}
}

// filtered reports whether a process is known not to be wanted, and counts its sample
// then. BPF may not know yet, or have no room for it.
func (a *aggregator) filtered(proc *process.Process) bool {
	if proc.Info().Verdict != process.VerdictFiltered {
		return false
	}
	a.stream.filter(FilterTarget, 1)
	return true
}

func (a *aggregator) aggregate(proc *process.Process, rec *bpf.Record, end timeOff, decoded *labels.Decoded) {
	a.counts.countRecord(rec, decoded)
	a.registry.Count(decoded)
	at := max(rec.TimeNs, end.endNs)
	a.checkClock(int64(at))
	of := a.batch.user(rec.UID)
	if handle := proc.Handle(); of.processes[handle] == nil {
		a.table.Hold(proc)
		of.processes[handle] = proc
	}
	a.sample = profile.Sample{
		Process:      proc.Handle(),
		Epoch:        proc.EpochAt(rec.TimeNs),
		TimeUnixNano: at + a.batch.clockOffset,
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
	if !a.profiles { // only what metrics tell apart
		s := &a.sample
		s.KernelFrames, s.UserFrames, s.KernelStack, s.UserStack = nil, nil, record.OutcomeNone, record.OutcomeNone
		s.Link, s.Sampled, s.Epoch = labels.Link{}, profile.SampledUnknown, 0
	}
	if a.batch.add(of, &a.sample) && a.functions && a.table.WantFunctions(proc, rec.UID, a.sample.UserFrames) {
		a.stream.source.Hurry() // others may be as new, and gone soon
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
func (a *aggregator) handOverAt(now uint64) {
	a.weigh()
	pressure := a.memory.Pressure()
	if a.batch.full(a.maxBytes, a.batchBytes(pressure)) {
		if a.batch.bytes < a.maxBytes {
			a.counts.limits[LimitBatchesEarly].Add(1)
		}
		a.output.enqueue(a.batch.split())
	}
	if pressure >= budget.Scarce && a.labels.ReadBytes() >= minForgotten {
		a.labels.ForgetReads()
	}
	if now < a.endNs {
		return
	}
	// Not where a batch is too large: what fills it is no reason for new budgets. And
	// not before it is handed over: equal sets of one batch must be one set.
	a.releaseLabels()
	end := max(a.batch.startMono, now)
	a.batch.endMono = end
	a.handOver()
	a.labels.EndInterval(now)
	// The reader wakes up some time after the end, which does not put off the next.
	if a.endNs += uint64(a.interval); a.endNs <= now {
		a.endNs = now + uint64(a.interval)
	}
	a.batch = a.output.newBatch(a.stream)
	a.batch.startMono = end // what was sampled since then has yet to be read
}

func (a *aggregator) handOver() {
	a.output.enqueue(a.batch)
	a.batch = nil
}
