//go:build linux

package executable

import (
	"cmp"
	"slices"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// noUser is the user id of nobody: (uid_t)-1.
const noUser = 1<<32 - 1

// maxPlaces owners' places are kept of a file.
const maxPlaces = 4

// An Owner is whom a process belongs to.
type Owner struct {
	UID       uint32
	Container string // "" for none
}

// An Asker is who needs a file: an owner, and one of his processes that maps it.
type Asker struct {
	Owner   Owner
	PID     int            // 0: there is none, or it has gone
	Mapping procfs.Mapping // of that process
}

// place is where a file can be found again.
type place struct {
	pid     int
	owner   Owner // of the process
	mapping procfs.Mapping
}

// places are where a file was last seen, the latest first, one of each owner: a process that
// maps something else there by now takes the file from no other owner's.
type places struct {
	mu      sync.Mutex
	last    []place
	changes uint64 // counts processes that are new in last
}

// see notes a place, and reports whether a process is new in the list.
func (p *places) see(at place) (news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.last, func(of place) bool { return of.owner == at.owner })
	if news = i < 0 || p.last[i].pid != at.pid; news {
		p.changes++
	}
	if i >= 0 {
		p.last = slices.Delete(p.last, i, i+1)
	}
	p.last = slices.Insert(p.last, 0, at)
	p.last = p.last[:min(len(p.last), maxPlaces)]
	return news
}

// bytes estimates what the texts in them take.
func (p *places) bytes() (sum int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.last {
		sum += len(p.last[i].mapping.Path) + len(p.last[i].owner.Container)
	}
	return sum
}

func (p *places) all() []place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.last)
}

// nearest are all, those of an owner first, and then those of the same user: another one may have
// us wait for his process. Before them comes the process that asks: of all that an owner has, only the
// one that was seen last is here, and it may have ended.
func (p *places) nearest(by Asker) []place {
	all := p.all()
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(by.Owner.distance(a.owner), by.Owner.distance(b.owner)) })
	if by.PID != 0 {
		all = slices.Insert(all, 0, place{by.PID, by.Owner, by.Mapping})
	}
	return all
}

func (o Owner) distance(to Owner) int {
	switch {
	case to == o:
		return 0
	case to.UID == o.UID:
		return 1
	}
	return 2
}

// of returns where a process of a user was seen last; the zero place if none was.
func (p *places) of(uid uint32) (at place) {
	for _, at := range p.all() {
		if at.owner.UID == uid {
			return at
		}
	}
	return place{}
}

// version is another one when another process was seen. It is never 0.
func (p *places) version() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes + 1
}
