//go:build linux

package process

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A runtime that is starting is looked at again after startingGap, and after twice the time
// before, maxStarting times. Then a look at the process has to do, if the longest of these times
// has passed.
const (
	startingGap = 5 * time.Millisecond
	maxStarting = 10
)

// openedRuntime is the language runtime of a process. The worker that runs the job uses it.
type openedRuntime struct {
	runtime langruntime.Runtime
	bias    uint64
	process langruntime.Process // nil: it is starting, or not supported
	refused bool                // it is not supported
	attempt int
	awaited bool  // it is starting: it is looked at again at againNs
	againNs int64 // when it may be looked at again; CLOCK_MONOTONIC
}

// openRuntime returns the language runtime of a process, nil if there is none that is wanted, or
// not yet.
func (t *Table) openRuntime(p *Process, info *Info) langruntime.Process {
	m := t.runtimeOf(info)
	o := &p.worker().opened
	if m == nil {
		*o = openedRuntime{}
		return nil
	}
	runtime := m.File.Facts().Runtime
	if o.runtime != runtime || o.bias != m.Bias {
		*o = openedRuntime{runtime: runtime, bias: m.Bias}
	}
	if o.process != nil || o.refused {
		return o.process
	}
	now := t.now()
	if now < o.againNs {
		// What is done sooner for the process has taken the job that was to open it.
		if o.awaited {
			t.openLater(p, o.againNs)
		}
		return nil
	}
	tid, err := t.Thread(p)
	if err != nil {
		return nil
	}
	opened, err := runtime.Open(t.opts.memory(tid), m.Bias)
	if _, gone := t.Thread(p); gone != nil { // it may have been another process
		return nil
	}
	o.againNs, o.awaited = now+int64(startingGap)<<o.attempt, false
	switch {
	case err == nil:
		o.process = opened
	case errors.Is(err, langruntime.ErrUnsupported):
		o.refused = true
		t.explainRuntime(err, m)
	case o.attempt < maxStarting:
		t.openLater(p, o.againNs)
		o.awaited = true
		o.attempt++
	default: // it is not what was expected, or very slow
		t.explainRuntime(fmt.Errorf("%w: %w", langruntime.ErrUnreadable, err), m)
	}
	return o.process
}

// openLater has the language runtime of a process looked at again.
func (t *Table) openLater(p *Process, ns int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !p.exited {
		t.jobs.schedule(p, workUnwind, ns)
	}
}

// runtimeOf returns the mapping of the language runtime of a process; nil if there is none that
// is wanted.
func (r *reader) runtimeOf(info *Info) *executable.Mapping {
	for i := range info.Mappings {
		m := &info.Mappings[i]
		if m.File == nil || !m.Biased {
			continue
		}
		if known := m.File.Facts().Runtime; known != nil && r.opts.Runtimes[known.Kind()] {
			return m
		}
		r.explainRuntime(m.File.Facts().RuntimeErr, m)
	}
	return nil
}

// explainRuntime logs, once for each file, why its language runtime has no functions.
func (r *reader) explainRuntime(err error, m *executable.Mapping) {
	count := &r.counts.runtimesUnsupported
	if errors.Is(err, langruntime.ErrUnreadable) {
		count = &r.counts.runtimesUnreadable
	} else if !errors.Is(err, langruntime.ErrUnsupported) {
		return
	}
	if r.opts.Runtimes == ([record.NumRuntimes]bool{}) || !m.File.FirstTime(runtimeNumber) {
		return
	}
	count.Add(1)
	r.log.Info("The functions of a language runtime are not known: its stacks have native frames only.",
		zap.String("file", m.Path), zap.Error(err))
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
		t.publishFailed(p, err)
	}
	return false
}
