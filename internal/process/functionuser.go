//go:build linux

package process

import (
	"math"
	"sync/atomic"
)

// userFunctions32nds of all memory are what functions of one user's processes may take, as they
// are. In the account they count twice: it is half of what has new processes reduced, those of
// other users, too.
const userFunctions32nds = 3

// userFunctions counts the functions of one user's processes.
type userFunctions struct {
	bytes     atomic.Int64
	processes int // that are counted; guarded by Table.mu
}

// tooMany reports whether a user has no room for further functions.
func (t *Table) tooMany(u *userFunctions) bool { return t.userRoom(u) <= 0 }

// userRoom is how much further functions of a user may take.
func (t *Table) userRoom(u *userFunctions) int {
	m := t.opts.Memory
	if u == nil || m == nil {
		return math.MaxInt
	}
	return int(m.Limit()/32*userFunctions32nds - u.bytes.Load())
}

// functionsUser returns with whose functions those of a process are counted: of the user that its
// first sample with some had. It is nil if the process was let go.
func (t *Table) functionsUser(p *Process, uid uint32) *userFunctions {
	f := &p.functions
	f.mu.Lock()
	u := f.user
	f.mu.Unlock()
	if u != nil {
		return u
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.user != nil || t.byHandle[p.handle] != p {
		return f.user
	}
	if u = t.functionUsers[uid]; u == nil {
		u = &userFunctions{}
		t.functionUsers[uid] = u
	}
	u.processes++
	f.user, p.functionUID = u, uid
	return u
}

// forgetFunctions takes the functions of a process that is let go from those of its user. The
// table is locked.
func (t *Table) forgetFunctions(p *Process) {
	p.functions.mu.Lock()
	u := p.functions.user
	p.functions.user = nil
	p.functions.mu.Unlock()
	if u == nil {
		return
	}
	u.bytes.Add(-int64(p.functionBytes))
	p.functionBytes = 0
	if u.processes--; u.processes == 0 {
		delete(t.functionUsers, p.functionUID)
	}
}
