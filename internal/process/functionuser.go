//go:build linux

package process

import (
	"maps"
	"math"
	"sync/atomic"
	"time"
)

// userFunctions32nds of all memory are what functions of one user's processes may take, as they
// are. In the account they count twice: it is half of what has new processes reduced, those of
// other users, too.
const userFunctions32nds = 3

// One part in userFunctionsPart of the CPU time for all that is done in the background is what functions
// of one user's processes are read in, and what of it was not used for userFunctionsSaved: a user has
// many processes, and each may have its functions read all the time.
const (
	userFunctionsPart  = 8
	userFunctionsSaved = 10 * time.Second
	// functionsSoon: functions of a user who has to wait for longer are not waited for.
	functionsSoon = 100 * time.Millisecond
)

// userFunctions counts the functions of one user's processes.
type userFunctions struct {
	bytes atomic.Int64

	// Guarded by Table.mu.
	processes int   // that are counted
	paidNs    int64 // when the user has the CPU time again that reading has taken
	turnNs    int64 // when the next process that has to wait for that is looked at
}

// owes reports whether a user has less CPU time saved up than one who is new.
func (u *userFunctions) owes(nowNs int64) bool { return u.paidNs > nowNs-int64(userFunctionsSaved) }

// chargeFunctions counts the CPU time of reading functions for the user of a process.
func (t *Table) chargeFunctions(p *Process, cpuNs int64) {
	limit := t.opts.CPU.Limit()
	if limit == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := p.functions.user; u != nil {
		u.paidNs = max(u.paidNs, t.now()-int64(userFunctionsSaved)) + int64(float64(cpuNs)*userFunctionsPart/limit)
	}
}

// functionsUnpaid puts back the reading of a process's functions if their user has no CPU time for it.
// Processes come one after the other: however many wait, few are taken in vain.
func (t *Table) functionsUnpaid(p *Process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	u, now := p.functions.user, t.now()
	if u == nil || p.exited || u.paidNs <= now {
		return false
	}
	if p.functionsDueNs <= now {
		p.functionsDueNs = max(u.paidNs, u.turnNs)
		u.turnNs = p.functionsDueNs + int64(functionsPiece)
	}
	t.jobs.schedule(p, workFunctions, p.functionsDueNs)
	return true
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
		t.settleFunctions()
		u = &userFunctions{paidNs: t.now() - int64(userFunctionsSaved)}
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
	if u.processes--; u.processes == 0 && !u.owes(t.now()) {
		delete(t.functionUsers, p.functionUID)
	}
}

// settleFunctions forgets users of whom nothing is left. The table is locked.
func (t *Table) settleFunctions() {
	now := t.now()
	maps.DeleteFunc(t.functionUsers, func(_ uint32, u *userFunctions) bool { return u.processes == 0 && !u.owes(now) })
}
