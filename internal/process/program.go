//go:build linux

package process

import (
	"math"
	"slices"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Programs gives processes label sources from their exec on. Calls come from several
// goroutines.
type Programs interface {
	// SetProgram has each process that executes a program begin with these sources. Without
	// any, it is early enough to look at one when it is sampled (record.EventSampled). If they
	// are presumed, samples that were taken with them have to be confirmed
	// (Table.Confirm). The slice belongs to the callee.
	SetProgram(p record.FileKey, sources []record.LabelSource, presumed bool) error
	// ForgetProgram takes that back. An unknown program is no error.
	ForgetProgram(p record.FileKey) error
}

const (
	// maxWithout programs are remembered that have no label sources. When there are more, it
	// begins anew.
	maxWithout = 4096
	// enoughWithout processes of a program in a row had none: the next will hardly have any.
	enoughWithout = 3
	// sometimesWith is of a program of which a process had some.
	sometimesWith = -1
)

// longestStart is how long a process may take to map what it starts with, on a busy machine.
const longestStart = time.Second

// Confirmation says whether the label sources that a process began with are its own.
type Confirmation int32

// The confirmations.
const (
	Unconfirmed Confirmation = iota // not looked at yet
	Confirmed
	Refuted
)

// programSources is what the processes of a program begin with. Guarded by Table.mu.
type programSources struct {
	sources []record.LabelSource
	sinceNs int64 // processes that executed it later began with that
	varying bool  // processes differ: nothing is presumed any more
}

// Confirm says whether the label sources that a process began with turned out to be its own.
func (p *Process) Confirm() Confirmation { return Confirmation(p.confirmation.Load()) }

// begun notes that a process has executed a program, and reports whether it will hardly have
// label sources. The table is locked.
func (t *Table) begun(p *Process, program record.FileKey, execNs int64) (plain bool) {
	p.program, p.execNs = program, execNs
	if known := t.programs[program]; known != nil && !known.varying && known.sinceNs < execNs {
		p.inherited = len(known.sources)
	}
	return t.without[program] == enoughWithout
}

// noteWithout counts the processes of a program that have no label sources, or none that
// could be found before they ended. The table is locked.
func (t *Table) noteWithout(p *Process, sources []record.LabelSource) {
	n, known := t.without[p.program]
	switch {
	case p.program == (record.FileKey{}):
		return
	case len(sources) > 0:
		n = sometimesWith
	case p.countedWithout || n == sometimesWith || n == enoughWithout:
		return
	default:
		p.countedWithout = true
		n++
	}
	if !known && len(t.without) >= maxWithout {
		t.forgetWithout(p)
	}
	if n == enoughWithout || t.without[p.program] == enoughWithout {
		t.tellWithout(p, p.program, n == enoughWithout)
	}
	t.without[p.program] = n
}

// tellWithout tells, because of what was found of a process, that processes of a program have
// no label sources, or takes that back. The table is locked.
func (t *Table) tellWithout(p *Process, program record.FileKey, without bool) {
	if t.opts.Programs == nil || t.programs[program] != nil {
		return // what it has is told
	}
	var err error
	if without {
		err = t.opts.Programs.SetProgram(program, nil, false)
	} else {
		err = t.opts.Programs.ForgetProgram(program)
	}
	if err != nil {
		t.publishFailed(p, err)
	}
}

// forgetWithout begins Table.without anew. The table is locked.
func (t *Table) forgetWithout(p *Process) {
	for program, n := range t.without {
		if n == enoughWithout {
			t.tellWithout(p, program, false)
		}
	}
	clear(t.without)
}

// presumed returns the sources that a process began with.
func (t *Table) presumed(p *Process) []record.LabelSource {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if known := t.programs[p.program]; known != nil && p.inherited > 0 && !known.varying {
		return known.sources
	}
	return nil
}

// awaitsContext returns when to look again at a process that has just begun, has thread
// contexts and has not published what their names are: it may end before a sample asks
// for them. The table is locked.
func (p *Process) awaitsContext(nowNs int64) (gapNs int64, ok bool) {
	if p.exited || p.worker.read.context.context != nil || nowNs >= p.youngUntilNs {
		return 0, false
	}
	threads := slices.ContainsFunc(p.worker.sources, func(s record.LabelSource) bool { return s.ABI.ThreadContext() })
	return (nowNs - (p.youngUntilNs - int64(young))) / 2, threads
}

// settled compares the first settled label sources of a process with those that others of
// its program had, and remembers them for the next ones. certain: they follow from the
// program's file alone.
func (t *Table) settled(p *Process, sources []record.LabelSource, certain bool) {
	if t.opts.Programs == nil {
		return
	}
	t.mu.RLock()
	program := p.program
	t.mu.RUnlock()
	if program == (record.FileKey{}) || p.Confirm() != Unconfirmed {
		return
	}
	// One at a time, so that what the kernel has is what is remembered.
	t.learning.Lock()
	defer t.learning.Unlock()
	t.mu.Lock()
	known := t.programs[program]
	equal := known != nil && slices.Equal(known.sources, sources)
	if !equal && p.inherited > len(sources) && t.now() < p.execNs+int64(longestStart) {
		t.mu.Unlock()
		return // not all that it starts with is mapped yet
	}
	if equal && known.sinceNs < p.execNs {
		p.confirmation.Store(int32(Confirmed))
	} else {
		p.confirmation.Store(int32(Refuted))
	}
	forget := known != nil && !known.varying && !equal
	if forget {
		known.varying = true
	}
	t.mu.Unlock()
	var err error
	switch {
	case forget:
		err = t.opts.Programs.ForgetProgram(program)
	case known == nil && len(sources) > 0 && presumable(sources):
		err = t.learn(program, sources, certain)
	}
	if err != nil {
		t.publishFailed(p, err)
	}
}

// learn has further processes of a program begin with label sources. t.learning is locked.
func (t *Table) learn(program record.FileKey, sources []record.LabelSource, certain bool) error {
	t.mu.Lock()
	var old []record.FileKey
	if len(t.programs) >= record.MaxPrograms {
		for p := range t.programs {
			old = append(old, p)
		}
		clear(t.programs)
	}
	// From now on nobody tells that it has none; no process has begun with them yet.
	learnt := &programSources{sources: slices.Clone(sources), sinceNs: math.MaxInt64}
	t.programs[program] = learnt
	t.mu.Unlock()
	err := t.forgetPrograms(old)
	if err == nil {
		err = t.opts.Programs.SetProgram(program, slices.Clone(sources), !certain)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		delete(t.programs, program)
		return err
	}
	learnt.sinceNs = t.now()
	return nil
}

func (t *Table) forgetPrograms(all []record.FileKey) error {
	for _, p := range all {
		if err := t.opts.Programs.ForgetProgram(p); err != nil {
			return err
		}
	}
	return nil
}

// presumable reports whether sources can be those of another process: a place in a table
// of modules depends on what was loaded when, and the way through V8's heap on what the
// process says of itself.
func presumable(sources []record.LabelSource) bool {
	for _, s := range sources {
		if s.Kind != record.TLSStatic && s.Kind != record.TLSRegister || s.ABI == record.ABIThreadContextNodeJS {
			return false
		}
	}
	return true
}
