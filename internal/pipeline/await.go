//go:build linux && (amd64 || arm64)

package pipeline

import (
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
)

const (
	// maxAwaitingBytes of samples wait for a name, half of them of one user; further
	// ones do without.
	maxAwaitingBytes     = 1 << 20
	maxUserAwaitingBytes = maxAwaitingBytes / 2
	// maxAwait is how long one waits.
	maxAwait = time.Second
	// settleGap is the least time between two looks at all that wait.
	settleGap = 5 * time.Millisecond
)

// awaiting holds samples with attributes whose names were not known when they
// came: a program may publish a name only just before it uses it. They wait until the
// process context has been looked at again. So do samples with labels from sources that
// are only presumed, until these are confirmed. Those of one process do not hold up another's.
type awaiting struct {
	samples  []awaitingSample
	bytes    int
	byUser   map[uint32]int // bytes, of users who have any
	settleNs uint64         // when they are looked at again
}

type awaitingSample struct {
	process     *process.Process
	record      bpf.Record
	end         timeOff
	sinceNs     uint64 // CLOCK_MONOTONIC
	bytes       int
	awaitsNames bool
}

// add copies a sample, unless there is no room.
func (a *awaiting) add(p *process.Process, rec *bpf.Record, end timeOff, names bool) bool {
	size := len(rec.Labels) + 8*(len(rec.KernelFrames)+len(rec.UserFrames)) + 256
	if a.bytes+size > maxAwaitingBytes || a.byUser[rec.UID]+size > maxUserAwaitingBytes {
		return false
	}
	if a.byUser == nil {
		a.byUser = map[uint32]int{}
	}
	a.byUser[rec.UID] += size
	a.samples = append(a.samples, awaitingSample{p, rec.Clone(), end, max(rec.TimeNs, end.endNs), size, names})
	a.bytes += size
	return true
}

func (a *awaiting) forget(uid uint32, bytes int) {
	if a.byUser[uid] -= bytes; a.byUser[uid] == 0 {
		delete(a.byUser, uid)
	}
}

// settle aggregates the samples that wait no longer: their process has been
// looked at since they were taken, or will not be in time.
func (a *aggregator) settle(now uint64) {
	if len(a.awaiting.samples) == 0 || now < a.awaiting.settleNs {
		return
	}
	a.awaiting.settleNs = now + uint64(settleGap)
	a.release(func(s *awaitingSample) bool { return !s.waits() || now >= s.sinceNs+uint64(maxAwait) })
}

func (s *awaitingSample) waits() bool {
	return s.awaitsNames && s.process.ContextCheckedNs() < int64(s.record.TimeNs) ||
		s.record.Presumed && s.process.Confirm() == process.Unconfirmed
}

// confirmed reports whether a sample with presumed label sources can be decoded now; it
// has lost its labels then if the sources were not the process's. Else it waits.
func (a *aggregator) confirmed(proc *process.Process, rec *bpf.Record, end timeOff) bool {
	if proc.Confirm() == process.Unconfirmed {
		names := a.labels.UnknownKeys(proc.Info().Keys(int64(rec.TimeNs)), rec.Labels) &&
			a.table.AwaitContext(proc, int64(rec.TimeNs))
		if a.awaiting.add(proc, rec, end, names) {
			return false
		}
	}
	a.dropUnconfirmed(proc, rec)
	return true
}

// dropUnconfirmed takes the labels from a sample whose sources were presumed, and are not
// known to be the process's.
func (a *aggregator) dropUnconfirmed(proc *process.Process, rec *bpf.Record) {
	if rec.Presumed && proc.Confirm() != process.Confirmed && len(rec.Labels) > 0 {
		a.counts.anomalies[labels.AnomalyUnconfirmedSource].Add(1)
		rec.Labels = nil
	}
}

// release aggregates those samples, in the order in which they came.
func (a *aggregator) release(which func(*awaitingSample) bool) {
	waiting := a.awaiting.samples[:0]
	for i := range a.awaiting.samples {
		s := &a.awaiting.samples[i]
		if !which(s) {
			waiting = append(waiting, *s)
			continue
		}
		a.dropUnconfirmed(s.process, &s.record)
		a.aggregate(s.process, &s.record, s.end, a.decode(s.process, &s.record))
		a.awaiting.bytes -= s.bytes
		a.awaiting.forget(s.record.UID, s.bytes)
	}
	clear(a.awaiting.samples[len(waiting):])
	a.awaiting.samples = waiting
}
