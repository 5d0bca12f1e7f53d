//go:build linux

package process

import (
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
	// maxPastFiles of all processes can still be opened when they are gone. Of more, samples have no names unless
	// these were read before (Stats.MappingsCut).
	maxPastFiles = 1024
	// openEnd is the last epoch of a mapping whose place is empty.
	openEnd = 1<<32 - 1
)

// epochs are those of a process. They are immutable; nil stands for epoch 0 alone.
type epochs struct {
	last    uint32
	beganNs []int64 // of the last ones, oldest first; CLOCK_MONOTONIC
	unseen  bool    // no look has seen what the last one began with
}

// next returns what epochs are when another one has begun.
func (e *epochs) next(ns int64, unseen bool) *epochs {
	if e == nil {
		e = &epochs{}
	}
	began := e.beganNs[max(0, len(e.beganNs)+1-maxEpochs):]
	return &epochs{last: e.last + 1, beganNs: append(slices.Clone(began), ns), unseen: unseen}
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
	e := p.epochs.Load()
	if ns == 0 || p.lookedNs == 0 || ns+int64(clockSkew) <= p.lookedNs || e != nil && e.unseen {
		return
	}
	p.epochs.Store(e.next(ns, true))
}

// comingEpoch is the one in which a file that the next look finds in another's place came there.
// The table is locked.
func (p *Process) comingEpoch() uint32 {
	switch e := p.epochs.Load(); {
	case e == nil:
		return 1
	case e.unseen:
		return e.last
	default:
		return e.last + 1
	}
}

// beginEpoch begins one that a look has found, unless an event has. The table is locked.
func (p *Process) beginEpoch(epoch uint32, ns int64) {
	if e := p.epochs.Load(); e == nil || e.last < epoch {
		p.epochs.Store(e.next(ns, false))
	}
}

// sawEpochs notes that a look has seen what was mapped before it began. The table is locked.
func (p *Process) sawEpochs(lookNs int64) {
	e := p.epochs.Load()
	if e == nil || !e.unseen || e.beganNs[len(e.beganNs)-1] > lookNs {
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
		return a.File.ID() == b.File.ID()
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

// left notes a mapping that has gone. Its path is its file's: another one would be held for it alone.
func (s *succession) left(i *Info, m executable.Mapping, last uint32, interval uint64) {
	m.Path = m.File.Path()
	i.past = append(i.past, pastMapping{Mapping: m, last: last, interval: interval})
	if !slices.Contains(s.gone, m.File) && len(s.gone) < maxPastMappings {
		s.gone = append(s.gone, m.File)
	}
}

// follow tells in which epochs mappings that were just read were there, by what was read before. What has
// come to another's place since is there from a given epoch on.
func (i *Info) follow(before *Info, epoch uint32, interval uint64) (s succession) {
	i.past, i.epochs = nil, before.epochs
	s.replaced = i.setSince(before, epoch)
	for _, m := range before.past {
		if m.interval+pastIntervals <= interval {
			continue
		}
		if m.last == openEnd {
			var left bool
			if m.last, left = i.left(&m.Mapping, epoch); !left {
				continue // it is back
			}
		}
		i.past = append(i.past, m)
	}
	for j := range before.Mappings {
		m := &before.Mappings[j]
		if last, left := i.left(m, epoch); left && m.File != nil {
			s.left(i, *m, last, interval)
		}
	}
	if n := len(i.past) - maxPastMappings; n > 0 {
		i.past, s.cut = slices.Clone(i.past[n:]), true
	}
	if s.replaced {
		if len(i.epochs) == 0 {
			i.epochs = []uint32{0}
		}
		i.epochs = append(slices.Clone(i.epochs[max(0, len(i.epochs)+1-maxPastMappings):]), epoch)
	}
	return s
}

// setSince sets Since of mappings, and reports whether some have come to another's place.
func (i *Info) setSince(before *Info, epoch uint32) (replaced bool) {
	for j := range i.Mappings {
		i.Mappings[j].Since = 0
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

// left reports whether an old mapping was there when what has its place now was not, and the last epoch
// in which it may have been.
func (i *Info) left(old *executable.Mapping, epoch uint32) (last uint32, left bool) {
	last, left = openEnd, true
	over := i.overlapping(old)
	for j := range over {
		m := &over[j]
		if m.Since == epoch {
			last = epoch - 1
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
	i.past, i.epochs = nil, nil
}

// A pastFile is in use while batches may have samples of it.
type pastFile struct {
	file     *executable.File
	interval uint64
}

// keepFiles keeps files open that a process maps no more. The table is locked.
func (t *Table) keepFiles(files []*executable.File) {
	for _, f := range files {
		f.Use(1)
		t.pastFiles = append(t.pastFiles, pastFile{f, t.interval})
	}
	if len(t.pastFiles) > maxPastFiles {
		t.counts.mappingsCut.Add(1)
		t.forgetFiles(func(n int) bool { return len(t.pastFiles)-n > maxPastFiles })
	}
}

// forgetFiles lets go of the first of pastFiles, as long as one has to go. The table is locked.
func (t *Table) forgetFiles(goes func(n int) bool) {
	n := 0
	for n < len(t.pastFiles) && goes(n) {
		t.pastFiles[n].file.Use(-1)
		n++
	}
	t.pastFiles = slices.Delete(t.pastFiles, 0, n)
}
