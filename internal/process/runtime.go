//go:build linux

package process

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A runtime that is starting is looked at again after startingGap, and after twice the time
// before, maxStarting times. Then a look at the process has to do, if the longest of these times
// has passed.
//
// A process may map several runtimes: the first that can be read is its runtime for as long as it maps
// that. Others are looked at while no more than maxRefused were refused.
const (
	startingGap = 5 * time.Millisecond
	maxStarting = 10
	maxRefused  = 4
)

// openedRuntime is the language runtime of a process. The worker that runs the job uses it.
type openedRuntime struct {
	mappedRuntime
	process langruntime.Process // nil: it is starting
	attempt int
	awaited bool  // it is starting: it is looked at again at againNs
	againNs int64 // when it may be looked at again; CLOCK_MONOTONIC
	// refused are not supported, or not what was expected. The process maps them.
	refused []mappedRuntime
}

// mappedRuntime is a language runtime where a process maps it.
type mappedRuntime struct {
	runtime langruntime.Runtime
	bias    uint64
}

// openRuntime returns the language runtime of a process, nil if there is none that is wanted, or
// not yet.
func (t *Table) openRuntime(p *Process, info *Info) langruntime.Process {
	for {
		opened, refused := t.openFirst(p, info)
		if !refused {
			return opened
		}
	}
}

// openFirst returns the runtime that is open, or else opens the first that was not refused. If that is
// refused now, it is the next one's turn.
func (t *Table) openFirst(p *Process, info *Info) (process langruntime.Process, refused bool) {
	o := &p.worker().opened
	of := p.worker().owner
	m, more, several := t.runtimeOf(of, info, o)
	if m == nil {
		*o = openedRuntime{refused: o.refused}
		return nil, false
	}
	if this := runtimeIn(m); o.mappedRuntime != this {
		*o = openedRuntime{mappedRuntime: this, refused: o.refused}
	}
	if o.process != nil {
		if several && t.lines.room(of.UID, lineRuntimes) && m.File.FirstTime(severalNumber) {
			t.say(of, lineRuntimes, "A process has several language runtimes: only the functions of one are known.",
				zap.Int("pid", p.pid), zap.String("file", m.Path))
		}
		return o.process, false
	}
	now := t.now()
	if now < o.againNs {
		// What is done sooner for the process has taken the job that was to open it.
		if o.awaited {
			t.openLater(p, o.againNs)
		}
		return nil, false
	}
	thread, err := t.Thread(p)
	if err != nil {
		return nil, false
	}
	watch := t.startWatch()
	opened, err := o.runtime.Open(t.opts.memory(thread.TID), m.Bias)
	cost := watch.stop()
	if t.Still(p, thread) != nil { // it may have been another process
		return nil, false
	}
	o.againNs, o.awaited = now+max(int64(startingGap)<<o.attempt, cost.gap(retryCostShare)), false
	switch {
	case err == nil:
		o.process = opened
	case errors.Is(err, langruntime.ErrUnsupported):
		refused = true
		t.explainRuntime(of, err, m)
	case o.attempt < maxStarting:
		t.openLater(p, o.againNs)
		o.awaited = true
		o.attempt++
	default: // it is not what was expected, or very slow
		refused = more
		t.explainRuntime(of, fmt.Errorf("%w: %w", langruntime.ErrUnreadable, err), m)
	}
	if refused {
		o.refused = append(o.refused, o.mappedRuntime)
	}
	return o.process, refused
}

// openLater has the language runtime of a process looked at again.
func (t *Table) openLater(p *Process, ns int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.exited {
		t.jobs.schedule(p, workUnwind, ns)
	}
}

func runtimeIn(m *executable.Mapping) mappedRuntime {
	return mappedRuntime{m.File.Facts().Runtime, m.Bias}
}

// runtimeOf returns the mapping of the language runtime of an owner's process: the one that is open, or else
// the first that was not refused; nil if there is none that is wanted. more tells that there is another
// one, several that one is of another file: V8 maps its own in two places. What was refused is forgotten
// when it is not mapped any more.
func (r *reader) runtimeOf(of executable.Owner, info *Info, o *openedRuntime) (m *executable.Mapping, more, several bool) {
	var open, first *executable.Mapping
	var refused []mappedRuntime
	for i := range info.Mappings {
		m := &info.Mappings[i]
		if m.File == nil || !m.Biased {
			continue
		}
		known := m.File.Facts().Runtime
		if known == nil || !r.opts.Runtimes[known.Kind()] {
			r.explainRuntime(of, m.File.Facts().RuntimeErr, m)
			continue
		}
		switch this := runtimeIn(m); {
		case slices.Contains(refused, this):
		case slices.Contains(o.refused, this):
			refused = append(refused, this)
		case o.process != nil && this == o.mappedRuntime:
			open = m
		case first == nil:
			first = m
		case this != runtimeIn(first):
			more = true
			several = several || this.runtime != runtimeIn(first).runtime
		}
	}
	o.refused = refused
	switch {
	case open != nil && first != nil:
		return open, true, several || o.runtime != runtimeIn(first).runtime
	case open != nil:
		return open, false, false
	case len(refused) >= maxRefused:
		return nil, false, false
	}
	return first, more, several
}

// explainRuntime counts and logs, once for each file that an owner's process maps, why its language runtime has no functions, up to a
// bound for each user.
func (r *reader) explainRuntime(of executable.Owner, err error, m *executable.Mapping) {
	count := &r.counts.runtimesUnsupported
	if errors.Is(err, langruntime.ErrUnreadable) {
		count = &r.counts.runtimesUnreadable
	} else if !errors.Is(err, langruntime.ErrUnsupported) {
		return
	}
	if r.opts.Runtimes == ([record.NumRuntimes]bool{}) {
		return
	}
	if m.File.FirstTime(runtimeNumber) {
		count.Add(1)
	}
	if r.lines.room(of.UID, lineRuntime) && m.File.FirstTime(runtimeLineNumber) {
		r.say(of, lineRuntime, "The functions of a language runtime are not known: its stacks have native frames only.",
			zap.String("file", m.Path), zap.Error(err))
	}
}

// publishRuntime tells the sampling programs of the language runtime of a process, and reports
// whether that is no news.
func (t *Table) publishRuntime(p *Process, info *Info) (same bool) {
	var runtime record.RuntimeProcess
	if opened := t.openRuntime(p, info); opened != nil {
		runtime = opened.Record()
	}
	w := p.worker()
	if known := w.runtime; known != nil && *known == runtime || known == nil && runtime == (record.RuntimeProcess{}) {
		return true
	}
	w.runtime = nil
	if runtime != (record.RuntimeProcess{}) {
		w.runtime = &runtime
	}
	if err := t.opts.Unwinder.SetRuntime(p.id, runtime); err != nil {
		w.runtime = nil // tried again with the next look
		t.publishFailed(p.pid, err)
	}
	return false
}
