//go:build linux && (amd64 || arm64)

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A truthJudge compares samples with what was published at their instants. For each set
// that proves itself it takes the number of the set, and asks the writer's log
// (testutil.PublicationLog) whether that set was current then. It belongs to one goroutine.
type truthJudge struct {
	t         testing.TB
	tolerance time.Duration
	offsets   clockOffsets
	writers   map[int64]*truthWriter // by PID
	mistakes  []string               // the first ones
	others    int                    // samples of other programs
	foreign   int                    // those of them with a writer's labels
	began     time.Time              // when the first sample was judged
	reader    truthReader
}

// truthWriter is a program with a log.
type truthWriter struct {
	name      string
	verify    truthVerifier
	publishes func(*truthWriter, *truthSample) bool // whether a sample should have labels
	log       *testutil.PublicationLog
	owners    map[uint64]*truthOwner // threads or goroutines
	tally     truthTally
}

// knowsThread reports whether the thread of a sample publishes: one of its samples has
// shown that. A program's first samples come before it is known.
func (w *truthWriter) knowsThread(s *truthSample) bool {
	o := w.owners[uint64(s.tid)]
	return o != nil && o.latest.number != 0
}

// truthVerifier checks what a sample says about itself, and tells which set of whom it
// has. none: it has no labels.
type truthVerifier func(s *truthSample) (owner, number uint64, none bool, err error)

// truthOwner publishes one set after the other.
type truthOwner struct {
	id     uint64
	log    *testutil.PublicationPart
	latest truthSight // of all batches before
	batch  []truthSight
}

// truthSight says that an owner had a set at a time.
type truthSight struct{ timeUnixNano, number uint64 }

// truthTally counts the samples of a writer.
type truthTally struct {
	judged     int           // right, wrong or stale
	sharp      int           // right, and no other set would have been
	wrong      int           // that do not prove themselves, or are somebody else's
	stale      int           // that were not current, or follow a later one
	notJudged  int           // whose set the log no longer has
	unlabelled int           // of threads that publish
	beyond     time.Duration // the most by which a right one was outside of the log's times
}

func (a *truthTally) add(b truthTally) {
	a.judged, a.sharp = a.judged+b.judged, a.sharp+b.sharp
	a.wrong, a.stale = a.wrong+b.wrong, a.stale+b.stale
	a.notJudged, a.unlabelled = a.notJudged+b.notJudged, a.unlabelled+b.unlabelled
	a.beyond = max(a.beyond, b.beyond)
}

func newTruthJudge(t testing.TB, writers map[int64]*truthWriter) *truthJudge {
	return &truthJudge{t: t, tolerance: clockError(t), writers: writers}
}

// total is the tally of all writers.
func (j *truthJudge) total() truthTally {
	var sum truthTally
	for _, w := range j.writers {
		sum.add(w.tally)
	}
	sum.wrong += j.foreign
	return sum
}

// String is the figure.
func (j *truthJudge) String() string { return truthJudges{j}.String() }

// truthJudges are of several receivers, one for each: the times of two receivers differ by what
// they know of the clocks.
type truthJudges []*truthJudge

func (all truthJudges) total() (sum truthTally) {
	for _, j := range all {
		sum.add(j.total())
	}
	return sum
}

// of is the tally of a writer.
func (all truthJudges) of(pid int64) (sum truthTally) {
	for _, j := range all {
		sum.add(j.writers[pid].tally)
	}
	return sum
}

// String is the figure.
func (all truthJudges) String() string {
	n := all.total()
	var took time.Duration
	for _, j := range all {
		if !j.began.IsZero() {
			took = max(took, time.Since(j.began))
		}
	}
	return fmt.Sprintf("%d samples judged, %d wrong, %d stale, %d not judged, %d without labels; %.1f %% could have had no other set; clocks within %v; %d writers, %d receivers, %.0f a second",
		n.judged, n.wrong, n.stale, n.notJudged, n.unlabelled, 100*float64(n.sharp)/float64(max(n.judged, 1)), n.beyond, len(all[0].writers), len(all), float64(n.judged)/max(took, time.Millisecond).Seconds())
}

// blame records a mistake.
func (j *truthJudge) blame(format string, args ...any) {
	if len(j.mistakes) < 20 {
		j.mistakes = append(j.mistakes, fmt.Sprintf(format, args...))
	}
}

// see takes one sample of a writer, at each of its times.
func (j *truthJudge) see(w *truthWriter, s *truthSample) {
	id, number, none, err := w.verify(s)
	times := len(s.times)
	switch {
	case none:
		if w.publishes(w, s) {
			w.tally.unlabelled += times
		}
		return
	case err != nil:
		w.tally.judged += times
		w.tally.wrong += times
		j.blame("%s, thread %d: %v", w.name, s.tid, err)
		return
	}
	o := w.owners[id]
	if o == nil {
		o = &truthOwner{id: id}
		w.owners[id] = o
	}
	for _, t := range s.times {
		o.batch = append(o.batch, truthSight{t, number})
	}
}

// endBatch judges what was seen since it was called last.
func (j *truthJudge) endBatch() {
	j.offsets.measure(j.t)
	if j.began.IsZero() && j.total().judged > 0 {
		j.began = time.Now()
	}
	for _, w := range j.writers {
		for _, o := range w.owners {
			if o.log == nil {
				o.log = w.log.Part(o.id)
			}
			slices.SortFunc(o.batch, func(a, b truthSight) int { return cmp.Compare(a.timeUnixNano, b.timeUnixNano) })
			for _, s := range o.batch {
				j.judge(w, o, s)
			}
			o.batch = o.batch[:0]
		}
	}
}

func (j *truthJudge) judge(w *truthWriter, o *truthOwner, s truthSight) {
	n := &w.tally
	at, only, beyond := j.at(o, s)
	if at == testutil.PublicationForgotten {
		n.notJudged++
		return
	}
	n.judged++
	// A sample may come in a later batch than those after it.
	inOrder := cmp.Compare(s.timeUnixNano, o.latest.timeUnixNano) * cmp.Compare(s.number, o.latest.number)
	switch {
	case at != testutil.PublicationCurrent:
		n.stale++
		j.blame("%s, owner %d: set %d at %d: %s", w.name, o.id, s.number, s.timeUnixNano, publicationText(at))
	case inOrder < 0:
		n.stale++
		j.blame("%s, owner %d: set %d at %d, but set %d at %d", w.name, o.id, s.number, s.timeUnixNano, o.latest.number, o.latest.timeUnixNano)
	case only:
		n.sharp++
	}
	n.beyond = max(n.beyond, beyond)
	if s.timeUnixNano > o.latest.timeUnixNano && at == testutil.PublicationCurrent {
		o.latest = s
	}
}

// at asks the log about a set, at the time that a sample has by each offset of the clocks.
func (j *truthJudge) at(o *truthOwner, s truthSight) (at testutil.Publication, only bool, beyond time.Duration) {
	if o.log == nil {
		return testutil.PublicationFuture, false, 0 // of somebody who publishes nothing
	}
	for i := len(j.offsets) - 1; i >= 0; i-- {
		from, to := j.offsets[i].monotonic(s.timeUnixNano, j.tolerance)
		var by uint64
		at, only, by = o.log.At(s.number, from, to)
		if at == testutil.PublicationCurrent {
			return at, only, time.Duration(by)
		}
	}
	return at, false, 0
}

func publicationText(at testutil.Publication) string {
	return map[testutil.Publication]string{
		testutil.PublicationPast:   "it had been replaced",
		testutil.PublicationFuture: "it had not been published",
	}[at]
}
