//go:build linux

package process

import (
	"cmp"
	"slices"
	"sort"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
)

// Samples are named when their batch is handed over. Until then a process may have unloaded a
// library, and another one may have come to its place. So the life of a process is divided into
// epochs: one begins with each mapping of a file that no look has seen yet, and a sample belongs
// to the one in which it was taken. The next look tells whether a file did come to another's place:
// from then on each mapping says in which epochs it was there. What is gone is kept for as long
// as batches have samples of it, if they are handed over in time.

const (
	// maxEpochs of a process are told apart by time. A sample is read a few hundred milliseconds after
	// it was taken, and looks, which epochs wait for, are at least rereadGap apart.
	maxEpochs = 32
	// maxPastMappings of a process are kept when they are gone, and so many epochs in which one came to
	// another's place. Of more, samples have no names (Stats.MappingsCut).
	maxPastMappings = 64
	// pastIntervals is how long they are kept, in calls of Table.EndInterval.
	pastIntervals = 2
	// maxPastFiles of all users can still be opened when they are gone. Of more, samples have no names unless
	// these were read before (Stats.MappingsCut).
	maxPastFiles = 1024
	// openEnd is the last epoch of a mapping whose place is empty.
	openEnd = 1<<32 - 1
)

// epochs are those of a process. They are immutable; nil stands for epoch 0 alone.
type epochs struct {
	last    uint32
	beganNs []int64 // of the last ones, oldest first; CLOCK_MONOTONIC
	sinceNs int64   // no look has seen what the last one began with before this
	unseen  bool    // nor any other look
}

// next returns what epochs are when another one has begun.
func (e *epochs) next(ns, sinceNs int64, unseen bool) *epochs {
	if e == nil {
		e = &epochs{}
	}
	began := e.beganNs[max(0, len(e.beganNs)+1-maxEpochs):]
	return &epochs{last: e.last + 1, beganNs: append(slices.Clone(began), ns), sinceNs: sinceNs, unseen: unseen}
}

// earlier returns epochs of which the last one has begun before it was known to: events of several CPUs come in any
// order, and a look may be faster than all. nil if it has not.
func (e *epochs) earlier(ns int64) *epochs {
	last := len(e.beganNs) - 1
	if ns >= e.beganNs[last] || ns+int64(clockSkew) <= e.sinceNs {
		return nil
	}
	began := *e
	began.beganNs = slices.Clone(e.beganNs)
	began.beganNs[last] = ns
	return &began
}

// EpochAt returns the epoch in which a sample was taken, by its time (CLOCK_MONOTONIC).
func (p *Process) EpochAt(ns uint64) uint32 {
	e := p.epochs.Load()
	if e == nil {
		return 0
	}
	epoch := e.last
	for i := len(e.beganNs) - 1; i >= 0 && int64(ns) < e.beganNs[i]; i-- {
		epoch--
	}
	return epoch
}

// mapsFile notes that a process has mapped a file, which may be in the place of another one. Before the
// first look there is none, and until the next one all that it maps belongs to one epoch. The table is locked.
func (p *Process) mapsFile(ns int64) {
	if ns == 0 || p.lookedNs == 0 {
		return
	}
	p.fileMappedNs = max(p.fileMappedNs, ns)
	e := p.epochs.Load()
	if e != nil {
		if began := e.earlier(ns); began != nil {
			p.epochs.Store(began)
			return
		}
	}
	if ns+int64(clockSkew) > p.lookedNs && (e == nil || !e.unseen) {
		p.epochs.Store(e.next(ns, p.lookedNs, true))
	}
}

// coming is what is known beforehand of a file that the next look finds in another's place.
type coming struct {
	epoch uint32 // it is there from this one on
	// lost says that events of mappings were since the last look, which began at sinceNs. In the epoch
	// before, either may have been there.
	lost    bool
	sinceNs int64
}

// comingEpoch says when what the next look finds in another's place came there. Mappings were last
// lost at lostNs. The table is locked.
func (p *Process) comingEpoch(lostNs int64) coming {
	c := coming{sinceNs: p.lookedNs, lost: lostNs > p.lookedNs}
	e, told := p.epochs.Load(), false
	if e != nil {
		c.epoch, told = e.last, e.unseen
	}
	if !told {
		c.epoch++
	}
	if c.lost {
		c.epoch++
	}
	return c
}

// beginEpoch begins one that a look has found, unless an event has. The table is locked.
func (p *Process) beginEpoch(c *coming, ns int64) {
	e := p.epochs.Load()
	if !c.lost {
		if e == nil || e.last < c.epoch {
			p.epochs.Store(e.next(ns, c.sinceNs, false))
		}
		return
	}
	// Events that were not lost tell of others: their epoch is the one before, and one that came while the look was
	// taken begins a further one.
	during := int64(0)
	if e == nil || e.last < c.epoch-1 {
		e = e.next(c.sinceNs, c.sinceNs, false)
	} else {
		last := len(e.beganNs) - 1
		if e.unseen && e.beganNs[last] > ns {
			during = e.beganNs[last]
		}
		began := slices.Clone(e.beganNs)
		began[last] = c.sinceNs
		e = &epochs{last: e.last, beganNs: began}
	}
	e = e.next(ns, ns, false)
	if during != 0 {
		e = e.next(during, ns, true)
	}
	p.epochs.Store(e)
}

// sawEpochs notes that a look has seen what was mapped before it began. The table is locked.
func (p *Process) sawEpochs(lookNs int64) {
	e := p.epochs.Load()
	if e == nil || !e.unseen || p.fileMappedNs > lookNs {
		return
	}
	seen := *e
	seen.unseen = false
	p.epochs.Store(&seen)
}

// A pastMapping is one of a file that is gone.
type pastMapping struct {
	executable.Mapping
	last     uint32 // epoch in which it may have been there
	interval uint64 // in which a look has missed it
}

// MappingIn returns the executable mapping that held an address in an epoch, or nil.
func (i *Info) MappingIn(epoch uint32, addr uint64) *executable.Mapping {
	if m := i.Mapping(addr); m != nil && m.Since <= epoch {
		return m
	}
	for j := len(i.past) - 1; j >= 0; j-- {
		if m := &i.past[j]; m.Since <= epoch && epoch <= m.last && m.Start <= addr && addr < m.Limit {
			return &m.Mapping
		}
	}
	return nil
}

// Epoch returns the first of the epochs in which all mappings are those of the given one.
func (i *Info) Epoch(epoch uint32) uint32 {
	if len(i.epochs) == 0 {
		return 0
	}
	n := sort.Search(len(i.epochs), func(n int) bool { return i.epochs[n] > epoch })
	if n == 0 {
		return epoch
	}
	return i.epochs[n-1]
}

// overlapping returns the mappings that share addresses with one.
func (i *Info) overlapping(m *executable.Mapping) []executable.Mapping {
	from := sort.Search(len(i.Mappings), func(n int) bool { return i.Mappings[n].Limit > m.Start })
	to := from
	for to < len(i.Mappings) && i.Mappings[to].Start < m.Limit {
		to++
	}
	return i.Mappings[from:to]
}

// sameFile reports whether two mappings that overlap show the same of the same file, or no file.
func sameFile(a, b *executable.Mapping) bool {
	switch {
	case a.Inode == 0 && b.Inode == 0:
		return true
	case a.Start-b.Start != a.Offset-b.Offset:
		return false
	case a.File != nil && b.File != nil:
		return a.File.ID() == b.File.ID() || a.File.Continues(b.File)
	}
	return a.Dev == b.Dev && a.Inode == b.Inode
}

func covers(m, other *executable.Mapping) bool {
	return m.Start <= other.Start && m.Limit >= other.Limit
}

// A succession is what has become of the mappings of a process from one look to the next.
type succession struct {
	replaced bool               // some came to the place of another one
	gone     []*executable.File // what mappings showed that are there no more
	cut      bool               // not all of these are kept
}

// follow tells in which epochs mappings that were just read were there, by what was read before. What has
// come to another's place since is there from a coming epoch on.
func (i *Info) follow(before *Info, c coming, interval uint64) (s succession) {
	epoch := c.epoch
	i.past, i.epochs, i.forgot = nil, before.epochs, before.forgot
	s.replaced = i.setSince(before, epoch)
	for _, m := range before.past {
		if m.interval+pastIntervals <= interval {
			i.forgot = i.forgot || m.last == openEnd
			continue
		}
		if m.last == openEnd {
			var left bool
			if m.last, left = i.left(&m.Mapping, &c); !left {
				continue // it is back
			}
		}
		i.past = append(i.past, m)
	}
	known := len(i.past)
	for j := range before.Mappings {
		m := before.Mappings[j]
		if last, left := i.left(&m, &c); left && m.File != nil {
			i.past = append(i.past, pastMapping{Mapping: m, last: last, interval: interval})
		}
	}
	if n := len(i.past) - maxPastMappings; n > 0 {
		i.forgot = i.forgot || slices.ContainsFunc(i.past[:n], func(m pastMapping) bool { return m.last == openEnd })
		i.past, known, s.cut = slices.Clone(i.past[n:]), max(0, known-n), true
	}
	for j := range i.past[known:] {
		if f := i.past[known+j].File; !slices.Contains(s.gone, f) {
			s.gone = append(s.gone, f)
		}
	}
	if s.replaced {
		if len(i.epochs) == 0 {
			i.epochs = []uint32{0}
		}
		begun := []uint32{epoch}
		if c.lost {
			begun = []uint32{epoch - 1, epoch}
		}
		i.epochs = slices.Concat(i.epochs[max(0, len(i.epochs)+len(begun)-maxPastMappings):], begun)
	}
	return s
}

// setSince sets Since of mappings, and reports whether some have come to another's place. Where it is not known
// any more what was there, a file may have.
func (i *Info) setSince(before *Info, epoch uint32) (replaced bool) {
	for j := range i.Mappings {
		m := &i.Mappings[j]
		m.Since = 0
		if before.forgot && m.Inode != 0 && len(before.overlapping(m)) == 0 && !before.hadIn(m) {
			m.Since, replaced = epoch, true
		}
	}
	set := func(old *executable.Mapping) {
		over := i.overlapping(old)
		for j := range over {
			if m := &over[j]; sameFile(old, m) {
				m.Since = max(m.Since, old.Since)
			} else {
				m.Since, replaced = epoch, true
			}
		}
	}
	for j := range before.Mappings {
		set(&before.Mappings[j])
	}
	for j := range before.past {
		if m := &before.past[j]; m.last == openEnd {
			set(&m.Mapping)
		}
	}
	return replaced
}

// hadIn reports whether something that has gone was where a mapping is, and nothing came there since.
func (i *Info) hadIn(m *executable.Mapping) bool {
	return slices.ContainsFunc(i.past, func(old pastMapping) bool {
		return old.last == openEnd && old.Start < m.Limit && m.Start < old.Limit
	})
}

// left reports whether an old mapping was there when what has its place now was not, and the last epoch
// in which it may have been.
func (i *Info) left(old *executable.Mapping, c *coming) (last uint32, left bool) {
	last, left = openEnd, true
	over := i.overlapping(old)
	for j := range over {
		m := &over[j]
		if m.Since == c.epoch {
			last = c.epoch - 1
			if c.lost {
				last--
			}
		}
		left = left && !(sameFile(old, m) && m.Since <= old.Since && covers(m, old))
	}
	return last, left
}

// forgetEpochs makes what is known of a process true of another one, which has no epochs yet.
func (i *Info) forgetEpochs() {
	if len(i.epochs) > 0 {
		i.Mappings = slices.Clone(i.Mappings)
		for j := range i.Mappings {
			i.Mappings[j].Since = 0
		}
	}
	i.past, i.epochs, i.forgot = nil, nil, false
}

// A pastFile is one that processes of a user had mapped.
type pastFile struct {
	file *executable.File
	uid  uint32
}

// keepFiles keeps files open that a process of a user maps no more. The table is locked.
func (t *Table) keepFiles(uid uint32, files []*executable.File) {
	for _, f := range files {
		past := pastFile{f, uid}
		if _, ok := t.pastFiles[past]; !ok {
			f.Use(1)
		}
		t.pastFiles[past] = t.interval
	}
	if len(t.pastFiles) <= maxPastFiles {
		return
	}
	t.counts.mappingsCut.Add(1)
	for len(t.pastFiles) > maxPastFiles {
		for _, past := range t.oldestFiles(len(t.pastFiles) - maxPastFiles) {
			t.forgetFile(past)
		}
	}
}

// oldestFiles are, of the user who has most, those that went first, as many as are wanted or there are. The table is
// locked.
func (t *Table) oldestFiles(n int) []pastFile {
	files := map[uint32][]pastFile{}
	most := uint32(0)
	for past := range t.pastFiles {
		files[past.uid] = append(files[past.uid], past)
		if len(files[past.uid]) > len(files[most]) {
			most = past.uid
		}
	}
	theirs := files[most]
	slices.SortFunc(theirs, func(a, b pastFile) int { return cmp.Compare(t.pastFiles[a], t.pastFiles[b]) })
	return theirs[:min(n, len(theirs))]
}

func (t *Table) forgetFile(past pastFile) {
	past.file.Use(-1)
	delete(t.pastFiles, past)
}

// forgetFiles lets go of files of which batches have no more samples. The table is locked.
func (t *Table) forgetFiles() {
	for past, interval := range t.pastFiles {
		if interval+pastIntervals <= t.interval {
			t.forgetFile(past)
		}
	}
}
