//go:build linux

package process

import (
	"cmp"
	"errors"
	"hash/fnv"
	"io"
	"slices"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

const (
	// maxContextMappings of a process are tried; a publisher keeps one.
	maxContextMappings = 4
	// contextGap is how often the timestamp of a process context is looked at
	// while the process is sampled.
	contextGap = 100 * time.Millisecond
	// keyGap is the same when a thread context refers to a name that is not known.
	keyGap = 5 * time.Millisecond
	// lateGap and maxLateGap bound how often a sampled process without a context
	// is searched for one: each time that there is none although it was only looked for
	// because of a sample, the gap doubles, and a periodic look leaves it. A process that maps code is still starting, or
	// compiles its own; it does not come to be looked for less and less by that. Without a
	// label source the gap grows to the interval in which each process is looked at anyway.
	lateGap, maxLateGap = 100 * time.Millisecond, 5 * time.Second
	// keyPatience is how long a sample may have to wait for a name.
	keyPatience = 500 * time.Millisecond
)

// contextState is what a worker remembers of a process's context.
type contextState struct {
	addr    uint64 // of its mapping; 0: none
	context *processctx.Context
	err     error // why there is none
	// resource is what was published last: a process that takes its context back, as SDKs do when they shut down, is
	// still the same service.
	resource []*commonpb.KeyValue
	names    []string
	// takenBack is the memory of those of the names that the process does not publish any more.
	takenBack int
	// seen is a hash of each name, also of those that are not kept, or refusedName. It stays without a
	// context: threads may still have records with the names of an earlier one.
	seen    []uint64
	keys    *labels.KeyMap
	sinceNs int64 // when the first of the names was published; CLOCK_MONOTONIC
	gap     time.Duration
	logged  bool
	reduced bool // only a part of it is kept
}

// readContext looks at the process context behind one of the mappings. again
// tells that the publisher is writing.
func (r *reader) readContext(l *look, mem tlsresolve.Memory, mappings []uint64) (again bool) {
	s := &l.read.context
	if s.reduced && !l.memoryShort {
		s.addr = 0 // as if it was new
	}
	if len(mappings) == 0 {
		*s = contextState{resource: s.resource, seen: s.seen, gap: s.gap, logged: s.logged} // not published, or taken back
		return false
	}
	var none error // why the first is no context
	for _, addr := range mappings {
		if addr == s.addr && s.unchanged(mem) {
			return false
		}
		c, err := processctx.Read(mem, addr)
		switch {
		case errors.Is(err, processctx.ErrNotContext):
			none = cmp.Or(none, err)
			continue
		case errors.Is(err, processctx.ErrUpdating):
			return true // the one before, if any, holds until there is a new one
		case errors.Is(err, procfs.ErrNoProcess):
			return false // so does it now that the process has ended
		case err != nil:
			r.contextFailed(l, addr, err)
			return false
		}
		r.counts.contextReads.Add(1)
		r.counts.contextErrors.Add(uint64(c.LeftOut))
		s.addr, s.context, s.resource, s.err, s.reduced = addr, c, c.Resource, nil, false
		if s.keys == nil {
			s.sinceNs = r.publishedNs(c)
		}
		r.countConflicts(l.info.PID, s.setNames(c.Keys))
		return false
	}
	r.contextFailed(l, mappings[0], none)
	return false
}

// contextFailed notes that there is no use in what is mapped as a context. It is
// logged once for each process, up to a bound for each user.
func (r *reader) contextFailed(l *look, addr uint64, err error) {
	r.counts.contextErrors.Add(1)
	s := &l.read.context
	if !s.logged {
		r.say(l.owner, lineContext, "A process context cannot be read.", zap.Int("pid", l.info.PID), zap.Error(err))
	}
	*s = contextState{addr: addr, err: err, resource: s.resource, seen: s.seen, gap: s.gap, logged: true}
}

func (s *contextState) unchanged(mem tlsresolve.Memory) bool {
	if s.context == nil {
		return false
	}
	at, err := processctx.PublishedAt(mem, s.addr)
	return err == nil && at == s.context.PublishedAtNs
}

// refusedName stands for the name of an index that has changed it.
const refusedName = 0

// hashName is never refusedName.
func hashName(name string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // never fails
	return max(h.Sum64(), refusedName+1)
}

// setNames takes over the names of key indexes. The list only grows: an index
// that has changed its name has none any more, because it cannot be told which
// of the two a thread means.
func (s *contextState) setNames(published []string) (conflicts int) {
	names := slices.Clone(published)
	takenBack := s.names[min(len(names), len(s.names)):]
	s.takenBack = processctx.NamesBytes(takenBack)
	names = append(names, takenBack...)
	for i, name := range names {
		switch hash := hashName(name); {
		case i >= len(s.seen):
			s.seen = append(s.seen, hash)
		case s.seen[i] == refusedName:
			names[i] = ""
		case s.seen[i] == hashName(""): // it had none, and so no meaning that could change
			s.seen[i] = hash
		case s.seen[i] != hash:
			conflicts++
			s.seen[i], names[i] = refusedName, ""
		}
	}
	s.names, s.keys = names, labels.NewKeyMap(names)
	return conflicts
}

// countConflicts counts keys that have changed their meaning, and logs the first.
func (r *reader) countConflicts(pid, conflicts int) {
	if conflicts > 0 && r.counts.keyConflicts.Add(uint64(conflicts)) == uint64(conflicts) {
		r.log.Warn("A process has changed the meaning of thread context keys, which are ignored from now on; further ones are only counted.",
			zap.Int("pid", pid), zap.Int("keys", conflicts))
	}
}

// reduce keeps some of the names only, and of the others what they were, and reports whether that is news.
func (s *contextState) reduce() bool {
	if s.reduced || s.bytes() <= maxReducedNames {
		return false
	}
	s.resource = nil
	if s.context != nil {
		s.context, s.names, s.reduced = s.context.Reduced(maxReducedNames), nil, true
		s.setNames(s.context.Keys)
	}
	return true
}

// bytes estimates the memory of what is kept of the context.
func (s *contextState) bytes() int {
	if s.context == nil {
		return processctx.ResourceBytes(s.resource)
	}
	return s.context.Bytes() + s.takenBack
}

// publishedNs returns when a context was published, by CLOCK_MONOTONIC. It is not
// later than now: a process in another time namespace has another clock.
func (r *reader) publishedNs(c *processctx.Context) int64 {
	now := r.now()
	return min(now, int64(c.PublishedAtNs)-(r.opts.bootTime()-now))
}

// checkContext looks at the timestamp of a context that is known. known is
// false if a look at the mappings is needed.
func (t *Table) checkContext(p *Process) (known bool) {
	began := t.now()
	s := &p.worker().read.context
	if p.worker().read.info == nil || s.addr == 0 || s.reduced && !t.short(p.worker().owner.UID) || !s.unchanged(t.opts.memory(p.worker().tid)) {
		return false
	}
	t.contextChecked(p, began, workContext, false)
	return true
}

// contextChecked notes that what is shown of the context was true at a time,
// and decides when to look again, by the work that the look was part of.
func (t *Table) contextChecked(p *Process, beganNs int64, w work, changed bool) {
	s := &p.worker().read.context
	switch {
	case s.context != nil || changed:
		s.gap = contextGap
	case w&(workLoad|workMapped|workNamed) != 0:
		s.gap = lateGap
	case w&workReread != 0: // it says nothing about whether one is coming
		s.gap = max(s.gap, lateGap)
	case len(p.worker().sources) > 0:
		s.gap = min(max(2*s.gap, lateGap), maxLateGap)
	default:
		s.gap = min(max(2*s.gap, lateGap), max(maxLateGap, t.opts.RescanInterval))
	}
	p.contextDueNs.Store(t.now() + int64(s.gap))
	p.contextKnown.Store(s.context != nil)
	p.contextCheckedNs.Store(beganNs)
}

// setContext takes over what a worker knows of the context, and reports whether
// that is news.
func (i *Info) setContext(s *contextState) (changed bool) {
	text := ""
	if s.err != nil {
		text = s.err.Error()
	}
	changed = i.Context != s.context || i.ContextErr != text
	i.Context, i.ContextErr, i.keys, i.keysSinceNs = s.context, text, s.keys, s.sinceNs
	i.Resource = s.resource
	i.keysSeen, i.keysTakenBack = len(s.seen), s.takenBack
	return changed
}

// Keys returns the attribute names that a thread context of a time (CLOCK_MONOTONIC)
// can refer to, by index. Before the process published any there were none: what
// a thread had then, such as a record that it has inherited by fork, means other
// names.
func (i *Info) Keys(timeNs int64) *labels.KeyMap {
	if timeNs < i.keysSinceNs {
		return nil
	}
	return i.keys
}

// Sampled tells that a process was sampled at a time (CLOCK_MONOTONIC): its
// context is worth a look now and then, and what was found of it before was its own. It does no I/O.
func (t *Table) Sampled(p *Process, timeNs int64) {
	if timeNs >= p.lessonNs.Load() {
		t.mu.Lock()
		t.prove(p)
		t.mu.Unlock()
	}
	if timeNs < p.contextDueNs.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.contextDueNs.Store(timeNs + int64(maxLateGap)) // until the look has been taken
	if !p.exited && p.pid != 0 && !p.Info().KernelThread {
		t.jobs.schedule(p, workContext, t.now())
	}
}

// AwaitContext asks for a look at a process's context because a sample of that
// time refers to a name that it does not have. pending is false if there will be no
// look in the time that a sample can wait, or has been one since.
func (t *Table) AwaitContext(p *Process, timeNs int64) (pending bool) {
	if p.contextCheckedNs.Load() >= timeNs {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.exited || p.pid == 0 {
		return false
	}
	now := t.now()
	due := max(now, p.contextCheckedNs.Load()+int64(keyGap))
	if !p.contextKnown.Load() {
		due = max(now, p.contextNotBeforeNs, p.contextCheckedNs.Load()+int64(lateGap))
	}
	if due > now+int64(keyPatience) {
		return false
	}
	t.jobs.schedule(p, workContext, due)
	return true
}

// namedDelays are the times after which a context is looked at again that the process has
// announced: it may do so before it publishes; and what follows within
// CONTEXT_GAP_NS (internal/bpf/src/context.bpf.c) is not announced to us.
var namedDelays = [...]time.Duration{2 * time.Millisecond, 15 * time.Millisecond}

// contextNamed takes note that a process publishes a context. The table is locked.
func (t *Table) contextNamed(p *Process) {
	if p.exited || p.pid == 0 {
		return
	}
	p.namedLooks = len(namedDelays)
	t.jobs.schedule(p, workContext|workNamed, max(t.now(), p.contextNotBeforeNs))
}

// contextSeen comes after a look at a context that may be another one soon.
func (t *Table) contextSeen(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.namedLooks == 0 || p.exited {
		return
	}
	delay := namedDelays[len(namedDelays)-p.namedLooks]
	p.namedLooks--
	t.jobs.schedule(p, workContext|workNamed, max(t.now()+int64(delay), p.contextNotBeforeNs))
}

// ContextCheckedNs returns a time (CLOCK_MONOTONIC) at which what Info says of
// the process context was true; 0: there was no look at it yet.
func (p *Process) ContextCheckedNs() int64 { return p.contextCheckedNs.Load() }
