//go:build linux

package executable

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// turnTime of a CPU is what building may take for a user before others come first.
	turnTime = int64(time.Second)
	// spentHalves is in what time half of what was spent for a user is forgotten.
	spentHalves = int64(time.Minute)
)

// shares are what building rows takes for each user: who has many files, or files that do not
// answer, does not hold up others. Guarded by Rows.mu.
type shares struct {
	spent    map[uint32]int64 // CPU time in ns, lately
	halvedNs int64
	again    map[uint32]*buildTimes // when the next file may be built for a user, whose last one took long
	stuck    map[uint32]int         // workers that were given up
}

func newShares() shares {
	return shares{spent: map[uint32]int64{}, again: map[uint32]*buildTimes{}, stuck: map[uint32]int{}}
}

// maxOthers users beside the first, and there is always one through whose process a file may be opened: no more are at
// their bound when all builders are.
const maxOthers = maxStuck / maxStuckOfUser

// askAlso notes the file of a process that waits beside others, if it is the first of its user's.
func (f *fileRows) askAlso(asked *File, w *Waiter) {
	of := func(a asking) bool { return a.by.Owner.UID == w.UID }
	if w.UID != f.uid && len(f.others) < maxOthers && !slices.ContainsFunc(f.others, of) {
		f.others = append(f.others, asking{asked, w.asker()})
	}
}

// mayOpen reports whether one more file may be opened for a user, which may not answer.
func (s *shares) mayOpen(uid uint32) bool { return s.stuck[uid] < maxStuckOfUser }

// mayOpenFor is mayOpen for what a process asks for.
func (s *shares) mayOpenFor(a asking) bool { return s.mayOpen(a.by.Owner.UID) }

// turn tells which files come before others, those with a lower number, when a file may be built,
// and whether it may at all. A file that processes of several users wait for has the best of theirs.
func (s *shares) turn(f *File) (turn, again int64, may bool) {
	turn, again = math.MaxInt64, math.MaxInt64
	for uid := range f.rows.users {
		if !s.mayOpen(uid) {
			continue
		}
		turn = min(turn, s.spent[uid]/turnTime)
		if times := s.again[uid]; times != nil {
			again = min(again, *times.of(f))
		} else {
			again = 0
		}
	}
	return turn, again, s.mayOpen(f.rows.uid) || slices.ContainsFunc(f.rows.others, s.mayOpenFor)
}

// choose has a file that may be built opened through a process of a user for whom that may be done: who has asked first
// may have it not answer, however many others wait for it.
func (s *shares) choose(f *fileRows) {
	if s.mayOpen(f.uid) {
		return
	}
	if i := slices.IndexFunc(f.others, s.mayOpenFor); i >= 0 {
		f.asking, f.others[i] = f.others[i], f.asking
		f.uid = f.by.Owner.UID
	}
}

// spend counts what a file took that a user's process has asked for.
func (r *Rows) spend(uid uint32, ns int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.shares
	now := r.opts.Now()
	for ; now-s.halvedNs >= spentHalves && len(s.spent) > 0; s.halvedNs += spentHalves {
		for u, spent := range s.spent {
			if s.spent[u] = spent / 2; spent < turnTime {
				delete(s.spent, u)
			}
		}
	}
	if len(s.spent) == 0 {
		s.halvedNs = now
	}
	s.spent[uid] += ns
}

// pause has the next file of a user wait who had one that took long.
func (r *Rows) pause(uid uint32, f *File, ns int64) {
	if ns <= buildPiece {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, now := &r.shares, r.opts.Now()
	maps.DeleteFunc(s.again, func(_ uint32, times *buildTimes) bool { return max(times[0], times[1]) <= now })
	if s.again[uid] == nil {
		s.again[uid] = &buildTimes{}
	}
	*s.again[uid].of(f) = now + (buildShare-1)*ns
}

// unstick notes that a file has answered after all. Rows.mu is held.
func (r *Rows) unstick(uid uint32) {
	if r.shares.stuck[uid]--; r.shares.stuck[uid] <= 0 {
		delete(r.shares.stuck, uid)
	}
	r.Wake()
}

// tableUnit is what a table counts for where tables are short: files that share one have a part of it
// each, up to 16 of them an exact one.
const tableUnit = 720720

// lack says what there is too little of for one more table, bytes or else tables: how much is missing,
// what the table needs, and what a file has of it. Rows.mu is held.
func (r *Rows) lack(bytes int) (missing, needs int, size func(*File) int) {
	if missing = r.bytes + bytes - r.opts.MaxBytes; missing > 0 {
		return missing, bytes, func(f *File) int { return r.tables[f.rows.ID].bytes / r.tables[f.rows.ID].files }
	}
	missing = (len(r.tables) + 1 - r.opts.MaxTables) * tableUnit
	return missing, tableUnit, func(f *File) int {
		files := r.tables[f.rows.ID].files
		return (tableUnit + files - 1) / files // all of them together have no less than the table
	}
}

// surplus are files whose rows make room for some that a user wants: of the users who have more
// than he would have then, from who has most, what fewest users share, the largest first. It is
// empty if that is not enough.
func (r *Rows) surplus(bytes int, uid uint32) (files []*File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	missing, needs, size := r.lack(bytes)
	held := map[uint32]int{uid: 0}
	of := map[uint32][]*File{}
	for f := range r.ready {
		held[f.rows.uid] += size(f)
		of[f.rows.uid] = append(of[f.rows.uid], f)
	}
	for _, list := range of {
		slices.SortFunc(list, func(f, g *File) int {
			return cmp.Or(cmp.Compare(len(f.rows.users), len(g.rows.users)), -cmp.Compare(size(f), size(g)))
		})
	}
	for missing > 0 {
		most := slices.MaxFunc(slices.Collect(maps.Keys(held)), func(a, b uint32) int { return cmp.Compare(held[a], held[b]) })
		if most == uid || held[most] <= held[uid]+needs {
			return nil
		}
		f := of[most][0]
		of[most] = of[most][1:]
		files = append(files, f)
		held[most] -= size(f)
		missing -= size(f)
	}
	return files
}

// poorest makes the rows of a file those of the user who has least, of those whose processes want them: there may be
// room for him where there is none for others.
func (r *Rows) poorest(f *File, by *builder) uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if by.file.Load() != f { // it was given up, and another may have the file
		return by.uid.Load()
	}
	if len(f.rows.users) > 1 {
		held := map[uint32]int{}
		for other := range r.ready {
			held[other.rows.uid] += r.tables[other.rows.ID].bytes
		}
		for uid := range f.rows.users {
			if cmp.Or(cmp.Compare(held[uid], held[f.rows.uid]), cmp.Compare(uid, f.rows.uid)) < 0 {
				f.rows.uid = uid
			}
		}
	}
	return f.rows.uid
}

// evict takes the rows of a file back that processes map: its user has more than others, for whom
// there is no room. Its processes' stacks are walked by frame pointer from now on.
func (r *Rows) evict(f *File) {
	r.replace(f, fileRows{state: rowsRefused})
	r.counts.refused.Add(1)
	r.failed(f, errNoRoom)
}
