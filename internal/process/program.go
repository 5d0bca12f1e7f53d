//go:build linux

package process

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Programs gives processes label sources from their exec on. Calls come from several
// goroutines.
type Programs interface {
	// SetProgram has each process that executes a program begin with these sources. It may be
	// early enough to look at one when it is sampled (record.LookWhenSampled). If they are
	// presumed, samples that were taken with them have to be confirmed (Table.Confirm). The slice
	// belongs to the callee.
	SetProgram(p record.FileKey, sources []record.LabelSource, presumed bool) error
	// ForgetProgram takes that back. An unknown program is no error.
	ForgetProgram(p record.FileKey) error
}

const (
	// maxWithout programs are remembered that have no label sources. When there are more, it
	// begins anew.
	maxWithout = record.MaxPlainPrograms
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
	sinceNs int64  // processes that executed it later began with that
	varying bool   // processes differ: nothing is presumed any more
	late    bool   // see record.LookWhenSampled
	uid     uint32 // whose process has told
}

// knownPrograms are what was learnt of programs by their processes, and told to the kernel, so
// that the next processes begin with it.
type knownPrograms struct {
	kernel   Programs                 // may be nil
	failed   func(pid int, err error) // told of what the kernel did not take
	prove    func(*Process)           // Table.prove
	now      func() int64
	offCPU   bool       // Options.OffCPU
	learning sync.Mutex // before mu

	mu      *sync.RWMutex // Table.mu, which guards what follows
	sources map[record.FileKey]*programSources
	without map[record.FileKey]int8 // processes in a row without label sources, or sometimesWith
}

func newKnownPrograms(t *Table) *knownPrograms {
	return &knownPrograms{
		kernel: t.opts.Programs, failed: t.publishFailed, prove: t.prove, now: t.now, offCPU: t.opts.OffCPU, mu: &t.mu,
		sources: map[record.FileKey]*programSources{}, without: map[record.FileKey]int8{},
	}
}

// Confirm says whether the label sources that a process began with turned out to be its own.
func (p *Process) Confirm() Confirmation { return Confirmation(p.confirmation.Load()) }

// begun notes that a process has executed a program, and reports whether it is early enough to look
// at it when it is sampled. The table is locked.
func (k *knownPrograms) begun(p *Process, program record.FileKey, execNs int64) (late bool) {
	p.program, p.execNs = program, execNs
	if known := k.sources[program]; known != nil && !known.varying && known.sinceNs < execNs {
		p.inherited = len(known.sources)
		return known.late
	}
	return k.without[program] == enoughWithout
}

// inherit notes what the sampling programs have copied for a child of a process, nil if that is not
// known. It reports whether these may be label sources that were presumed when it was forked, whatever
// has become of them in its parent since: the child's own look confirms or refutes them. The table is
// locked.
func (p *Process) inherit(parent *Process) (presumed bool) {
	if parent == nil {
		return false
	}
	p.inherited = parent.inherited
	if parent.publication != unpublished {
		p.inherited = parent.published // its Info comes later
	}
	if parent.inherited == 0 || parent.program == (record.FileKey{}) {
		return false
	}
	p.program, p.execNs, p.forked = parent.program, parent.execNs, true
	return true
}

// learnt reports whether noteWithout has no more to learn of a program. The table is locked.
func (k *knownPrograms) learnt(program record.FileKey) bool {
	n := k.without[program]
	return program == (record.FileKey{}) || n == sometimesWith || n == enoughWithout
}

// noteWithout counts the processes of a program that have no label sources, or none that
// could be found before they ended. The table is locked.
func (k *knownPrograms) noteWithout(p *Process, sources []record.LabelSource) {
	n, known := k.without[p.program]
	switch {
	case p.program == (record.FileKey{}) || p.forked:
		return
	case len(sources) > 0:
		n = sometimesWith
	case p.countedWithout || k.learnt(p.program):
		return
	default:
		p.countedWithout = true
		n++
	}
	if !known && len(k.without) >= maxWithout {
		k.forgetWithout(p)
	}
	if n == enoughWithout || k.without[p.program] == enoughWithout {
		k.tellWithout(p, p.program, n == enoughWithout)
	}
	k.without[p.program] = n
}

// tellWithout tells, because of what was found of a process, that processes of a program have
// no label sources, or takes that back. The table is locked.
func (k *knownPrograms) tellWithout(p *Process, program record.FileKey, without bool) {
	if k.kernel == nil || k.sources[program] != nil {
		return // what it has is told
	}
	var err error
	if without {
		err = k.kernel.SetProgram(program, nil, false)
	} else {
		err = k.kernel.ForgetProgram(program)
	}
	if err != nil {
		k.failed(p.pid, err)
	}
}

// forgetWithout begins knownPrograms.without anew. The table is locked.
func (k *knownPrograms) forgetWithout(p *Process) {
	for program, n := range k.without {
		if n == enoughWithout {
			k.tellWithout(p, program, false)
		}
	}
	clear(k.without)
}

// presumed returns the sources that a process began with.
func (k *knownPrograms) presumed(p *Process) []record.LabelSource {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if known := k.sources[p.program]; known != nil && p.inherited > 0 && !known.varying {
		return known.sources
	}
	return nil
}

// lesson is what was found of a process that others of its program may begin with.
type lesson struct {
	sources []record.LabelSource
	certain bool // they follow from the program's file alone, see reader.certain
	ofImage bool // the program is on an image: it can only take back what is known
}

// noLesson is when a process is to be sampled that has none.
const noLesson = math.MaxInt64

// prove has what was found of a process taught, now that it is sure that it was found of it: it has
// run, forked or ended after that as what it was. A look cannot tell: it may have read what the process
// has executed meanwhile, of which the event is still to come, or was lost. The table is locked.
func (t *Table) prove(p *Process) {
	if p.lesson == nil {
		return
	}
	p.lessonNs.Store(noLesson)
	t.jobs.schedule(p, workTeach, urgent)
}

// settled compares the first settled label sources of a process with those that others of
// its program had, and keeps them for the next ones, but for those of a program on an image: what the
// kernel takes for it later may be another one. certain reports whether they follow from the file of a
// program alone; it is asked if that matters, as it may read that file.
func (k *knownPrograms) settled(p *Process, sources []record.LabelSource, certain func(record.FileKey) bool) {
	if k.kernel == nil {
		return
	}
	k.mu.RLock()
	program, forked, known := p.program, p.forked, k.sources[p.program]
	k.mu.RUnlock()
	if program == (record.FileKey{}) || p.Confirm() != Unconfirmed {
		return
	}
	found := &lesson{sources: slices.Clone(sources), ofImage: p.worker().read.program.OfImage()}
	found.certain = known == nil && !forked && found.isNews(nil) && certain(program)
	k.mu.Lock()
	defer k.mu.Unlock()
	known = k.sources[program]
	equal := known != nil && slices.Equal(known.sources, sources)
	if !equal && p.inherited > len(sources) && k.now() < p.execNs+int64(longestStart) {
		return // not all that it starts with is mapped yet
	}
	if equal && known.sinceNs < p.execNs {
		p.confirmation.Store(int32(Confirmed))
	} else {
		p.confirmation.Store(int32(Refuted))
	}
	if forked {
		return // it may have loaded what its parent has not; processes that execute the program speak for it
	}
	if !found.isNews(known) {
		return
	}
	p.lesson = found
	p.lessonNs.Store(k.now())
	if p.ended {
		k.prove(p)
	}
}

// isNews reports whether it changes what is known of a program, which may be nil.
func (l *lesson) isNews(known *programSources) bool {
	if known == nil {
		return len(l.sources) > 0 && !l.ofImage && presumable(l.sources)
	}
	return !known.varying && !slices.Equal(known.sources, l.sources)
}

// teach has the next processes of a program begin with what was found of one.
func (k *knownPrograms) teach(p *Process) {
	// One at a time, so that what the kernel has is what is remembered.
	k.learning.Lock()
	defer k.learning.Unlock()
	k.mu.Lock()
	program, of, uid := p.program, p.lesson, p.user()
	p.lesson = nil
	known := k.sources[program]
	if of == nil || !of.isNews(known) {
		k.mu.Unlock()
		return
	}
	if known != nil {
		known.varying = true
	}
	k.mu.Unlock()
	var err error
	if known != nil {
		err = k.kernel.ForgetProgram(program)
	} else {
		err = k.learn(program, of.sources, of.certain, uid)
	}
	if err != nil {
		k.failed(p.pid, err)
	}
}

// learn has further processes of a program begin with label sources, because of a user's. k.learning
// is locked.
func (k *knownPrograms) learn(program record.FileKey, sources []record.LabelSource, certain bool, uid uint32) error {
	k.mu.Lock()
	var spared []record.FileKey
	if len(k.sources) >= record.MaxPrograms {
		spared = append(spared, k.spare())
		delete(k.sources, spared[0])
	}
	// From now on nobody tells that it has none; no process has begun with them yet.
	learnt := &programSources{
		sources: slices.Clone(sources), sinceNs: math.MaxInt64, late: record.LookWhenSampled(sources, !certain, k.offCPU),
		uid: uid,
	}
	k.sources[program] = learnt
	k.mu.Unlock()
	err := k.forgetPrograms(spared)
	if err == nil {
		err = k.kernel.SetProgram(program, slices.Clone(sources), !certain)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		delete(k.sources, program)
		return err
	}
	learnt.sinceNs = k.now()
	return nil
}

// spare returns the program that makes room: of the user whose processes have told of the most, the
// one that has been known for longest. The table is locked.
func (k *knownPrograms) spare() (program record.FileKey) {
	told := map[uint32]int{}
	for _, known := range k.sources {
		told[known.uid]++
	}
	var of *programSources
	for key, known := range k.sources {
		if of == nil || cmp.Or(cmp.Compare(told[of.uid], told[known.uid]), cmp.Compare(known.sinceNs, of.sinceNs)) < 0 {
			program, of = key, known
		}
	}
	return program
}

func (k *knownPrograms) forgetPrograms(all []record.FileKey) error {
	for _, p := range all {
		if err := k.kernel.ForgetProgram(p); err != nil {
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
