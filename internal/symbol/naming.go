package symbol

import (
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// maxNaming is the CPU time that demangling may take of a batch; a common name takes some 10 µs.
	maxNaming = 200 * time.Millisecond
	// namingShare of it is for the names of one user's processes.
	namingShare = 2
	// reservedNaming of it is for users who have had less than littleNaming: who is first leaves some.
	reservedNaming = 50 * time.Millisecond
	littleNaming   = 5 * time.Millisecond
)

// naming is how long demangling has taken since a batch began. Each name is demangled to its
// end, so that the last one of a user may take a little longer than there is time.
type naming struct {
	opts *CacheOptions

	mu      sync.Mutex
	spent   time.Duration
	spentOf map[uint32]time.Duration
	late    uint64 // names for which there was no time left, ever
}

// namer names what a user's processes have run, in the time that is left for that. The zero value has
// all time.
type namer struct {
	naming *naming
	uid    uint32
}

// name returns a function's name for people. If there is no time left to demangle it, it stays as it
// is for now, and ok is false.
func (n namer) name(d *demangler, system []byte) (name string, ok bool) {
	name = strings.ToValidUTF8(string(system), "\uFFFD")
	if !mangled(name) {
		return name, true
	}
	if n.naming == nil {
		return d.name(name), true
	}
	ok = n.naming.spend(n.uid, func() { name = d.name(name) })
	return name, ok
}

// spend demangles a name for a user, if there is time left for that.
func (n *naming) spend(uid uint32, demangle func()) (ok bool) {
	if !n.left(uid) {
		return false
	}
	took := time.Duration(0)
	n.opts.spend(uid, func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		began := n.opts.threadTime()
		demangle()
		took = n.opts.threadTime() - began
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spent += took
	n.spentOf[uid] += took
	return true
}

// left reports whether there is time left for a user, and counts when there is none.
func (n *naming) left(uid uint32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	most, mostOf := maxNaming-reservedNaming, maxNaming/namingShare
	if n.spentOf[uid] < littleNaming {
		most = maxNaming
	}
	if n.spent < most && n.spentOf[uid] < mostOf {
		return true
	}
	n.late++
	return false
}

// rest begins a batch of lookups.
func (n *naming) rest() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spent = 0
	clear(n.spentOf)
}

// lateNames returns for how many names there was no time left.
func (n *naming) lateNames() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.late
}
