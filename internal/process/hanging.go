//go:build linux

package process

import (
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// Who reads a process waits for as long as its memory and its files let it: a page that
// nobody serves, a filesystem that is the process's own, a server that is gone. Nothing ends
// such a wait but the process. Or it computes, for as long as the files that it maps are made to
// take. So a worker that does either is replaced, and what that costs is
// bounded: by user, and in a user's containers.
const (
	// lateAfter is how long a look that waits may take before its worker is replaced: others have to wait for so
	// long. So is one that computes: that has had costlyAfter of a CPU by then.
	lateAfter, costlyAfter = 100 * time.Millisecond, 50 * time.Millisecond
	// slowAfter is the same for one that waits for a CPU, or for another worker's look.
	slowAfter = 2 * time.Second
	// hungAfter is when a look that is late, and waits, is given up.
	hungAfter = 10 * time.Second
	// quarantine is how long a process is left alone whose look was given up, once that has
	// ended after all.
	quarantine = 10 * time.Minute
	// ownerAge is for how long it is believed whose a process is.
	ownerAge = time.Second
	// maxLate looks take a thread each, maxUserLate of them at one user's processes, and
	// maxOwnerLate at those in one container, of which maxOwnerCostly computed then, less
	// than slowAfter ago. A user who has as many has to wait.
	maxLate, maxUserLate, maxOwnerLate, maxOwnerCostly = 128, 32, 8, 2
)

// nobody stands for the owner of a process that is not known.
const nobody = math.MaxUint32

// hanging counts the looks that are late, and keeps the processes that wait because of
// them. Guarded by Table.mu.
type hanging struct {
	late  int
	hung  int
	users map[uint32]*userLooks
	// looking are the workers that look at a process, without those that are late.
	looking []*worker
}

// watch has those that look for long replaced. A timer for each look would wake a thread for
// nothing, so it is called when nobody is left to look at another process, when one has to wait for a look at
// another, and from time to time; and one that is set already, for an earlier look, is left to expire.
func (h *hanging) watch() {
	for _, w := range h.looking {
		if !w.alarmed {
			w.setAlarm(max(lateAfter-time.Since(w.began), 0))
		}
	}
}

func (w *worker) setAlarm(after time.Duration) {
	w.alarmed = true
	w.alarm(after)
}

// rest notes that a worker looks at nothing any more, or is late.
func (h *hanging) rest(w *worker) {
	if i := slices.Index(h.looking, w); i >= 0 {
		h.looking = slices.Delete(h.looking, i, i+1)
	}
}

// userLooks are the looks at the processes of one user.
type userLooks struct {
	running    int
	late       int            // of these
	containers map[string]int // late ones
	costly     map[string]int // of these, those that compute, by container
	waiting    []*Process     // in the order in which they came
}

// admits reports whether one more process of a user may be looked at. While looks at others
// of them are late, that is one at a time: more might be late, too, and then nobody would be
// left for the processes of others.
func (u *userLooks) admits(container string) bool {
	return u.late == 0 || u.late < maxUserLate && u.containers[container] < maxOwnerLate && u.costly[container] < maxOwnerCostly &&
		u.running == u.late
}

func (h *hanging) of(uid uint32) *userLooks {
	u := h.users[uid]
	if u == nil {
		u = &userLooks{containers: map[string]int{}, costly: map[string]int{}}
		h.users[uid] = u
	}
	return u
}

// settle forgets a user of whom nothing is left.
func (h *hanging) settle(uid uint32) {
	if u := h.users[uid]; u != nil && u.running == 0 && len(u.waiting) == 0 {
		delete(h.users, uid)
	}
}

// owned finds out whose a process is: it may have become another user's.
func (r *reader) owned(p *Process) executable.Owner {
	w, err := r.who(p.pid)
	p.worker().owner, p.worker().who, p.worker().ownedNs = w.owner(), nil, r.now()
	if err == nil {
		p.worker().who = &w
	}
	return p.worker().owner
}

// watch begins to watch what a worker reads of a process. The table is locked.
func (t *Table) watch(w *worker, p *Process, of executable.Owner) {
	t.hanging.of(of.UID).running++
	w.process, w.owner, w.began, w.meter = p, of, time.Now(), meter{}
	if t.hanging.looking = append(t.hanging.looking, w); len(t.hanging.looking) >= t.opts.Workers {
		t.hanging.watch()
	}
}

// reads reports whether work reads the process: to tell of its mappings, too, its language runtime
// is looked for in its memory.
func (w work) reads() bool { return w&workForget == 0 && w != workTeach }

// begin gives a worker a process to look at. Where its user's have to wait, or the process
// itself does, it is put back. One that has ended is not looked at. Whose it is, is found out before, if that was not
// done just now, as a look at whose it was: also files that the kernel alone writes can keep who reads them, since the
// last one who holds the memory of a process that ends takes it apart (__mmput in kernel/fork.c).
func (t *Table) begin(w *worker, p *Process, todo work) (begun bool) {
	if !todo.reads() {
		return true
	}
	of, ownedNs := p.worker().owner, p.worker().ownedNs
	if ownedNs == 0 || t.now()-ownedNs >= int64(ownerAge) {
		if of.UID = p.user(); !t.enter(w, p, todo, of) {
			return false
		}
		t.startMeter(w, todo)
		now := t.owned(p)
		t.stopMeter(w)
		if stays, late := t.goOn(w, p, todo, now == of); stays || late {
			return stays
		}
		of = now
	}
	return t.enter(w, p, todo, of)
}

// goOn has a look go on when it has found out whose a process is, if that is as it was: else it ends. If the worker was
// replaced meanwhile, the process is put back.
func (t *Table) goOn(w *worker, p *Process, todo work, same bool) (stays, late bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if same && !w.late {
		w.began, w.meter = time.Now(), meter{}
		return true, false
	}
	t.end(w)
	if w.late {
		p.putBack(todo)
		t.jobs.enqueue(p)
	}
	return false, w.late
}

// enter begins a look at a process of an owner, or puts it back.
func (t *Table) enter(w *worker, p *Process, todo work, of executable.Owner) (entered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if !entered {
			t.jobs.giveBack(p)
		}
	}()
	if p.exited { // meanwhile: there is nothing to look at, and what was published is taken back in time
		p.state = jobIdle
		if p.work |= todo & workTeach; p.work != 0 {
			t.jobs.enqueue(p)
		}
		return false
	}
	t.setUser(p, of.UID)
	u := t.hanging.of(of.UID)
	switch now := t.now(); {
	case !p.owing && t.jobs.owes(of.UID, now): // which was not known when it was taken
		p.putBack(todo)
		t.jobs.enqueue(p)
		t.hanging.settle(of.UID)
		return false
	case p.quarantinedNs > now:
		p.putBack(todo)
		p.dueNs = p.quarantinedNs
		t.jobs.enqueue(p)
		t.hanging.settle(of.UID)
		return false
	case !u.admits(of.Container):
		p.state = jobWaiting
		p.putBack(todo)
		u.waiting = append(u.waiting, p)
		t.hanging.watch()
		return false
	}
	t.watch(w, p, of)
	return true
}

// end notes that a worker has looked at its process. The table is locked.
func (t *Table) end(w *worker) {
	p, of := w.process, w.owner
	if p == nil {
		return
	}
	u := t.hanging.of(of.UID)
	u.running--
	if w.late {
		t.hanging.late--
		u.late--
		if u.containers[of.Container]--; u.containers[of.Container] == 0 {
			delete(u.containers, of.Container)
		}
		u.rest(w)
	}
	if w.hung {
		t.hanging.hung--
		t.isolate(p, t.now()+int64(quarantine))
	}
	w.process, w.hung = nil, false
	t.hanging.rest(w)
	t.hanging.release(u, t.jobs)
	t.hanging.settle(of.UID)
}

// rest notes that a late look does not count as one that computes any more.
func (u *userLooks) rest(w *worker) {
	if !w.costly {
		return
	}
	w.costly = false
	if u.costly[w.owner.Container]--; u.costly[w.owner.Container] == 0 {
		delete(u.costly, w.owner.Container)
	}
}

// release puts those back into the queue that need not wait any more.
func (h *hanging) release(u *userLooks, to *jobs) {
	waiting := u.waiting
	u.waiting = nil
	for i, p := range waiting {
		switch {
		case p.state != jobWaiting: // it has exited
		case u.admits(p.worker().owner.Container):
			to.enqueue(p)
			if u.late > 0 { // the next one after this
				u.waiting = append(u.waiting, waiting[i+1:]...)
				return
			}
		default:
			u.waiting = append(u.waiting, p)
		}
	}
}

// releaseAll makes up for processes that were put back into the queue and have exited: the
// next ones still wait for them.
func (h *hanging) releaseAll(to *jobs) {
	for uid, u := range h.users {
		h.release(u, to)
		h.settle(uid)
	}
}

// overdue is called when a look has taken long. It reports whether another worker is to
// take the place of this one.
func (t *Table) overdue(w *worker) (replace bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.alarmed = false
	t.chargeRunning(t.now())
	took, costly := time.Since(w.began), w.meter.chargedNs >= int64(costlyAfter)
	switch {
	case w.process == nil, t.ending.Load():
		return false // it has just ended, or Run is about to, which tells of it
	case took < lateAfter: // it was set for an earlier one
		if len(t.hanging.looking) >= t.opts.Workers || len(t.hanging.of(w.owner.UID).waiting) > 0 {
			w.setAlarm(lateAfter - took)
		}
		return false
	case !w.late && (t.hanging.late == maxLate || took < slowAfter && !costly && !procfs.Blocked(int(w.tid.Load()))):
		w.setAlarm(lateAfter)
	case !w.late:
		u := t.hanging.of(w.owner.UID)
		w.late = true
		t.hanging.rest(w)
		t.hanging.late++
		u.late++
		u.containers[w.owner.Container]++
		next := hungAfter
		if w.costly = costly && took < slowAfter && !procfs.Blocked(int(w.tid.Load())); w.costly {
			u.costly[w.owner.Container]++
			next = slowAfter
		}
		t.hanging.release(u, t.jobs)
		t.jobs.giveBack(w.process)
		w.setAlarm(next - took)
		return true
	case w.costly: // others of its owner have waited for long enough
		u := t.hanging.of(w.owner.UID)
		u.rest(w)
		t.hanging.release(u, t.jobs)
		w.setAlarm(max(hungAfter-took, time.Second))
	case took < hungAfter || !procfs.Blocked(int(w.tid.Load())):
		w.setAlarm(max(hungAfter-took, time.Second))
	default:
		t.hung(w)
	}
	return false
}

// hung gives up a look that is late. What its process runs next is the same process.
func (t *Table) hung(w *worker) {
	w.hung = true
	t.hanging.hung++
	t.counts.stuck.Add(1)
	p := w.process
	t.isolate(p, math.MaxInt64) // until it has ended
	t.log.Warn("A process does not let itself be read: its memory or one of its files never answers. It is left alone.",
		zap.Int("pid", p.pid), zap.Uint32("uid", w.owner.UID), zap.String("container", w.owner.Container),
		zap.String("executable", p.Info().Name), zap.Int("hanging", t.hanging.hung))
}

// isolate leaves a process alone until a time, also if it has meanwhile run something else.
func (t *Table) isolate(p *Process, untilNs int64) {
	p.quarantinedNs = untilNs
	if newest := t.newest[p.id.TGID]; newest != nil && newest.id.StartNs == p.id.StartNs {
		newest.quarantinedNs = untilNs
		if newest.work != 0 && !newest.exited {
			t.jobs.schedule(newest, newest.work, untilNs) // earlier than it was, or no news
		}
	}
}
