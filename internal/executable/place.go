//go:build linux

package executable

import (
	"slices"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// maxPlaces owners' places are kept of a file.
const maxPlaces = 4

// An Owner is whom a process belongs to.
type Owner struct {
	UID       uint32
	Container string // "" for none
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

func (p *places) see(at place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.last, func(of place) bool { return of.owner == at.owner })
	if i < 0 || p.last[i].pid != at.pid {
		p.changes++
	}
	if i >= 0 {
		p.last = slices.Delete(p.last, i, i+1)
	}
	p.last = slices.Insert(p.last, 0, at)
	p.last = p.last[:min(len(p.last), maxPlaces)]
}

func (p *places) all() []place {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.last)
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
