//go:build linux

package process

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Bounds of what is kept of one process's functions. What was not on a stack for keptIntervals
// makes room for others.
const (
	maxFunctions     = 16 << 10
	maxFunctionBytes = 8 << 20
	keptIntervals    = 8
)

const (
	// functionsAtOnce are read without a look at whether the process is still the same, and no
	// longer than for functionsPiece and the one that is then read: what it takes to read one is
	// up to the process.
	functionsAtOnce = 64
	functionsPiece  = 20 * time.Millisecond
	// functionsGap is the least time between two readings of a process's functions, beside the
	// share of a worker's time that they may take, and their user's share of CPU time.
	functionsGap   = 2 * time.Millisecond
	functionsShare = 4
	// unloadedGap is after which time it is looked again which runtime a process has that was not
	// read yet, or whether it still is that process, where that could not be read; maxUnloaded times.
	unloadedGap = 20 * time.Millisecond
	maxUnloaded = 50
	// maxRereads is how often the time doubles after which one is read again that may lack something.
	maxRereads = 4
	// functionBytes is the cost of one beside what it holds.
	functionBytes = 2*budget.MapEntryBytes + 64
)

// functionKey is what the frames of a runtime tell of a function.
type functionKey struct {
	object uint64
	cookie uint32
	kind   record.RuntimeKind
}

type knownFunction struct {
	function langruntime.Function // nil: not read, or gone
	read     bool                 // it was tried
	again    bool                 // not for the first time
	refused  bool                 // there was no room for what was read
	interval uint64               // when it was on a stack last; refused or gone: when it was tried
	tried    uint64               // when it was read last
	partial  bool                 // a later reading may have more
	rereads  uint8                // of one that is, up to maxRereads
}

// missed reports whether it was tried in vain: there was no room, or the process had it no more.
// It may have been in the middle of moving it, or could not be read at the time.
func (f *knownFunction) missed() bool { return f.refused || f.read && f.function == nil }

// rests reports whether one that was missed is not yet tried again. One that the process did not have may have been moved
// just then: it is tried in the next interval, but only once.
func (f *knownFunction) rests(interval uint64) bool {
	if f.refused || f.again {
		return f.interval+keptIntervals >= interval
	}
	return f.tried >= interval
}

// readFunction is what the reading of a function came to.
type readFunction struct {
	function langruntime.Function // nil: gone, or refused
	refused  bool                 // there was no room for it
}

// functions are those of one process. They are read once, soon after they were first seen: what
// they are made of may be freed.
type functions struct {
	mu     sync.Mutex
	known  map[functionKey]*knownFunction
	wanted []functionKey // not read yet
	// stale are read, and may lack something; they are read again when there is nothing else to do.
	stale []functionKey
	// reading are those that a worker reads, of wanted or, rereading, of stale.
	reading   int
	rereading bool
	bytes     int
	// kept by the runtime, beside them.
	kept int
	// user has them counted; nil: there were none yet. Set with Table.mu held, too.
	user *userFunctions
	// swept is 1 + the interval in which it was last tried to make room.
	swept uint64
	// crowded tells that there was no room for one since.
	crowded bool

	// Used by the worker that runs the job; there is at most one.
	unloaded int
}

// held is the memory that they take, and with whose functions that is counted.
func (f *functions) held() (bytes int, user *userFunctions) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes + f.kept, f.user
}

// want notes a function on a stack; news tells that it has to be read. refused: there is no room.
func (f *functions) want(k functionKey, interval uint64, short bool) (news, refused bool) {
	known := f.known[k]
	switch {
	case known != nil && !known.missed():
		known.interval = interval
		if known.partial && known.read && known.tried+keptIntervals<<known.rereads < interval {
			known.read = false
			f.stale = append(f.stale, k)
			return true, false
		}
		return false, false
	case known != nil && known.rests(interval):
		return false, known.refused // it is not read again yet
	}
	if f.crowded || f.full(short) {
		f.sweep(interval)
		if f.full(short) {
			return false, true
		}
	}
	if f.known == nil {
		f.known = map[functionKey]*knownFunction{}
	}
	if f.known[k] == nil {
		f.bytes += functionBytes
	}
	f.known[k] = &knownFunction{interval: interval, again: known != nil}
	f.wanted = append(f.wanted, k)
	return true, false
}

func (f *functions) full(short bool) bool {
	return short || len(f.known) >= maxFunctions || f.bytes >= maxFunctionBytes
}

// HandedOver is called when the samples of an interval have been handed over: functions that no sample
// has had for some such calls make room for others. Those of samples that wait are kept, as long as no
// more than keptIntervals batches wait.
func (t *Table) HandedOver() { t.functionsInterval.Add(1) }

// sweep lets go of what was not on a stack lately, once in an interval: stacks may have
// thousands of functions for which there is no room.
func (f *functions) sweep(interval uint64) {
	if f.swept == interval+1 {
		return
	}
	f.swept = interval + 1
	f.crowded = false
	for k, known := range f.known {
		if known.read && known.interval+keptIntervals < interval {
			f.bytes -= functionBytes
			if known.function != nil {
				f.bytes -= known.function.Bytes()
			}
			delete(f.known, k)
		}
	}
}

// take returns functions to be read.
func (f *functions) take() []functionKey {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rereading = len(f.wanted) == 0
	from := f.from()
	n := min(len(*from), functionsAtOnce)
	f.reading = n
	keys := (*from)[:n:n]
	if *from = (*from)[n:]; len(*from) == 0 {
		*from = nil
	}
	return keys
}

// from is where those come from that are being read.
func (f *functions) from() *[]functionKey {
	if f.rereading {
		return &f.stale
	}
	return &f.wanted
}

// giveBack returns functions that were not read after all, the first to be taken.
func (f *functions) giveBack(keys []functionKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := f.from()
	*from = append(slices.Clone(keys), *from...)
	f.reading -= len(keys)
}

// WantFunctions has the functions read that the frames of a language runtime in a user stack
// stand for, those that are not known yet, and reports whether there are any. It does no I/O. The
// user is that of the sample.
func (t *Table) WantFunctions(p *Process, uid uint32, frames []uint64) bool {
	if p.handle == 0 || !slices.ContainsFunc(frames, isRuntimeWord) {
		return false
	}
	user := t.functionsUser(p, uid)
	interval, any, short := t.functionsInterval.Load(), false, t.short(uid)
	p.functions.mu.Lock()
	short = short || t.tooMany(user)
	before := p.functions.swept
	for i := 0; i+1 < len(frames); i++ {
		w, ok := record.RuntimeWordOf(frames[i])
		if !ok {
			continue
		}
		i++
		news, refused := p.functions.want(functionKey{frames[i], w.Cookie(), w.Kind()}, interval, short)
		any = any || news
		if refused {
			t.counts.functionsRefused.Add(1)
		}
	}
	swept := p.functions.swept != before // what they take has changed
	p.functions.mu.Unlock()
	if !any && !swept {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.account(p)
	switch {
	case p.exited || p.pid == 0:
		t.functionsEnd(p)
	case any:
		t.jobs.schedule(p, workFunctions, p.functionsDueNs)
	}
	return any
}

// functionsEnd counts, of a process that is not looked at any more, the functions that were not read: they never will be.
// The table is locked.
func (t *Table) functionsEnd(p *Process) {
	f := &p.functions
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.wanted {
		known := f.known[k]
		known.read, known.again, known.tried = true, true, t.functionsInterval.Load()
	}
	t.counts.functionsGone.Add(uint64(len(f.wanted)))
	f.wanted = nil
}

func isRuntimeWord(word uint64) bool {
	_, ok := record.RuntimeWordOf(word)
	return ok
}

// Functions appends what a frame of a language runtime stands for, the innermost function first.
// Nothing is appended if that is not known: it had gone when it was to be read, or there was no
// room for it.
func (p *Process) Functions(to []langruntime.Frame, w record.RuntimeWord, object uint64) []langruntime.Frame {
	p.functions.mu.Lock()
	known := p.functions.known[functionKey{object, w.Cookie(), w.Kind()}]
	var function langruntime.Function
	if known != nil {
		function = known.function
	}
	p.functions.mu.Unlock()
	if function == nil {
		return to
	}
	return function.Frames(to, w.Position())
}

// RunsFunctions reports whether frames of a language runtime were found in the process.
func (p *Process) RunsFunctions() bool {
	p.functions.mu.Lock()
	defer p.functions.mu.Unlock()
	return len(p.functions.known) > 0
}

// ReadsFunctions reports whether functions of a process will be read soon, for the first time.
func (t *Table) ReadsFunctions(p *Process) bool {
	t.mu.RLock()
	now := t.now()
	late := p.exited || p.quarantinedNs > now
	if u := p.functions.user; u != nil {
		late = late || u.paidNs > now+int64(functionsSoon)
	}
	t.mu.RUnlock()
	if late {
		return false
	}
	p.functions.mu.Lock()
	defer p.functions.mu.Unlock()
	return len(p.functions.wanted) > 0 || p.functions.reading > 0 && !p.functions.rereading
}

// readFunctions reads functions that are wanted of a process.
func (t *Table) readFunctions(p *Process) {
	if t.functionsUnpaid(p) {
		return
	}
	watch := t.startWatch()
	runtime := t.openRuntime(p, p.Info())
	if runtime == nil && p.functions.unloaded < maxUnloaded {
		p.functions.unloaded++
		t.functionsLater(p, int64(unloadedGap))
		return
	}
	keys := p.functions.take()
	read := make([]readFunction, len(keys))
	thread, err := t.Thread(p)
	if err == nil && runtime != nil {
		mem := t.opts.memory(thread.TID)
		tried := t.readWithin(p, keys, read, func(k functionKey) langruntime.Function {
			if k.kind != runtime.Kind() {
				return nil
			}
			function, err := runtime.Read(mem, k.object, k.cookie)
			if err != nil {
				return nil
			}
			return function
		})
		p.functions.giveBack(keys[tried:])
		keys = keys[:tried]
		err = t.Still(p, thread)
	}
	gap := functionsGap
	switch {
	case err == nil && runtime != nil:
		p.functions.unloaded = 0
	case err == nil: // they are of no runtime
	case !errors.Is(err, procfs.ErrNoProcess) && !errors.Is(err, errReplaced) && p.functions.unloaded < maxUnloaded:
		p.functions.unloaded++
		p.functions.giveBack(keys)
		keys, gap = nil, unloadedGap
	default: // it may have been another process
		clear(read)
	}
	kept := 0
	if holder, ok := runtime.(langruntime.Holder); ok {
		kept = holder.Held()
	}
	t.keepFunctions(p, keys, read, kept)
	cost := watch.stop()
	t.chargeFunctions(p, cost.cpu)
	t.functionsLater(p, max(int64(gap), functionsShare*cost.wall))
}

// readWithin reads functions of a process for as long as there is room for them: how large one is,
// which the process may have made up, is known only then. It returns how many it has tried.
func (t *Table) readWithin(p *Process, keys []functionKey, to []readFunction, read func(functionKey) langruntime.Function) (tried int) {
	until := t.now() + int64(functionsPiece)
	p.functions.mu.Lock()
	room := min(maxFunctionBytes-p.functions.bytes, t.userRoom(p.functions.user))
	p.functions.mu.Unlock()
	if t.short(p.user()) {
		room = 0
	}
	for i, k := range keys {
		if room <= 0 {
			to[i].refused = true
			continue
		}
		if i > 0 && t.now() >= until {
			return i
		}
		function := read(k)
		if function == nil {
			continue
		}
		if size := function.Bytes(); size <= room {
			to[i].function = function
			room -= size
		} else {
			to[i].refused = true
		}
	}
	return len(keys)
}

func (t *Table) keepFunctions(p *Process, keys []functionKey, read []readFunction, kept int) {
	p.functions.mu.Lock()
	defer p.functions.mu.Unlock()
	p.functions.kept = kept
	p.functions.reading = 0
	for i, k := range keys {
		known := p.functions.known[k]
		known.read, known.tried = true, t.functionsInterval.Load()
		if known.function != nil {
			known.rereads = min(known.rereads+1, maxRereads)
		}
		switch {
		case known.function != nil && read[i].function == nil: // it stays as it was read before
			continue
		case known.function != nil:
			p.functions.bytes -= known.function.Bytes()
		}
		known.function, known.refused = read[i].function, read[i].refused
		if known.refused {
			p.functions.crowded = true
			t.counts.functionsRefused.Add(1)
			continue
		}
		if known.function == nil {
			t.counts.functionsGone.Add(1)
			continue
		}
		t.counts.functionsRead.Add(1)
		p.functions.bytes += known.function.Bytes()
		partial, ok := known.function.(langruntime.Partial)
		known.partial = ok && partial.Partial()
	}
}

// functionsLater has the functions read that are still wanted, or will be, after a time.
func (t *Table) functionsLater(p *Process, afterNs int64) {
	p.functions.mu.Lock()
	more := len(p.functions.wanted)+len(p.functions.stale) > 0
	p.functions.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	p.functionsDueNs = t.now() + afterNs
	t.account(p)
	switch {
	case p.exited:
		t.functionsEnd(p)
	case more:
		t.jobs.schedule(p, workFunctions, p.functionsDueNs)
	}
}

// postpone puts work back for which functions have not left the time that it has to wait for.
func (t *Table) postpone(p *Process, w work) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w&(workLoad|workForget) != 0 || p.exited || t.now() >= p.notBeforeNs {
		return false
	}
	t.jobs.schedule(p, w, p.notBeforeNs)
	return true
}
