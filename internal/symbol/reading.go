package symbol

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Owner is on whose behalf something is read: a process, the user that it runs as, the
// container that it is in and the path of its cgroup.
type Owner struct {
	UID       uint32
	Container string
	Cgroup    string
	PID       int
}

// What is read, or closed, at the same time, in all, for one user and for one container of a user. A
// file that never answers takes one of these places until it does.
const maxReads, maxUserReads, maxOwnerReads = 128, 32, 8

// Shares of CacheOptions.Wait: for one file, and for all files of one user.
const waitShare, userWaitShare = 4, 2

// hungAfter is when what is read counts as hanging, if its thread does not only wait for a CPU.
const hungAfter = 10 * time.Second

// reading is what a cache reads, and how long its lookups have waited for that. Guarded by
// the cache's mutex.
type reading struct {
	opts   *CacheOptions
	closed *atomic.Bool  // nothing more is read, and what is being read may end
	over   chan struct{} // closed while hurried
	now    map[*read]struct{}
	users  map[uint32]int // reads
	owners map[place]int  // reads
	turns  map[uint32]*read
	// hurried: lookups wait for nothing, until they are told that there is time again, or, once nothing more is
	// read, for good.
	hurried bool
	// Since the batch began:
	waited  time.Duration
	waitsOf map[uint32]time.Duration
}

// place is where an owner's processes are counted together.
type place struct {
	uid       uint32
	container string
}

func (o Owner) place() place { return place{o.UID, o.Container} }

// home is where processes of one user see the same files. The path of the cgroup is a part of
// it because a container is recognized by the last part of that path, which can be imitated:
// who may make cgroups makes them below his own only.
type home struct {
	place
	cgroup string
}

func (o Owner) home() home { return home{o.place(), o.Cgroup} }

// read is something that is read.
type read struct {
	owner    Owner
	name     string
	began    time.Time
	thread   atomic.Int32 // that reads it; 0: none yet
	reported bool
}

func newReading(opts *CacheOptions) reading {
	return reading{
		opts: opts, closed: &atomic.Bool{}, over: make(chan struct{}), now: map[*read]struct{}{}, users: map[uint32]int{},
		owners: map[place]int{}, turns: map[uint32]*read{}, waitsOf: map[uint32]time.Duration{},
	}
}

// begin takes a place for something that an owner has us read; nil if there is none.
func (r *reading) begin(of Owner, name string) *read {
	if r.closed.Load() {
		return nil
	}
	if len(r.now) >= maxReads || r.users[of.UID] >= maxUserReads || r.owners[of.place()] >= maxOwnerReads {
		return nil
	}
	return r.add(of, name)
}

// add takes a place, though there may be none: what is open has to be closed.
func (r *reading) add(of Owner, name string) *read {
	one := &read{owner: of, name: name, began: r.opts.Now()}
	r.now[one] = struct{}{}
	r.users[of.UID]++
	r.owners[of.place()]++
	return one
}

func (r *reading) end(one *read) {
	delete(r.now, one)
	r.giveTurn(one)
	release(r.users, one.owner.UID)
	release(r.owners, one.owner.place())
}

func release[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// closePoll is how often close looks whether all reads have ended.
const closePoll = 2 * time.Millisecond

// stop lets nothing more begin, and nobody wait. The lock that guards the reading must not be held.
func (r *reading) stop(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
	r.closed.Store(true)
	r.hurry(true)
}

// hurry has lookups wait for nothing, those that wait already too, or, when there is time again, as long as they may.
func (r *reading) hurry(hurried bool) {
	hurried = hurried || r.closed.Load()
	if hurried == r.hurried {
		return
	}
	r.hurried = hurried
	if hurried {
		close(r.over)
	} else {
		r.over = make(chan struct{})
	}
}

// close is stop, and waits until all reads have ended, or ctx has.
func (r *reading) close(ctx context.Context, mu *sync.Mutex) error {
	r.stop(mu)
	for tick := time.NewTicker(closePoll); ; {
		mu.Lock()
		left := len(r.now)
		mu.Unlock()
		if left == 0 {
			tick.Stop()
			return nil
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return fmt.Errorf("%d files are still being read: %w", left, ctx.Err())
		case <-tick.C:
		}
	}
}

// left returns how long a lookup for a user may wait, at most so long.
func (r *reading) left(uid uint32, most time.Duration) time.Duration {
	if r.hurried {
		return 0
	}
	return min(most, r.opts.Wait-r.waited, r.opts.Wait/userWaitShare-r.waitsOf[uid])
}

// spend notes that a lookup for a user has waited.
func (r *reading) spend(uid uint32, waited time.Duration) {
	r.waited += waited
	r.waitsOf[uid] += waited
}

// rest begins a batch of lookups.
func (r *reading) rest() {
	r.waited = 0
	clear(r.waitsOf)
}

// hanging returns how many reads have not ended for long.
func (r *reading) hanging() (n int) {
	for one := range r.now {
		if r.hangs(one) {
			n++
		}
	}
	return n
}

func (r *reading) hangs(one *read) bool {
	thread := int(one.thread.Load())
	return r.opts.Now().Sub(one.began) >= hungAfter && thread != 0 && r.opts.blocked(thread)
}

// Hung is something that has not answered for long.
type Hung struct {
	Owner
	Name string // of the file
}

// hung returns what hangs and was not returned before.
func (r *reading) hung() (list []Hung) {
	for one := range r.now {
		if !one.reported && r.hangs(one) {
			one.reported = true
			list = append(list, Hung{one.owner, one.name})
		}
	}
	return list
}

// Hung returns the files that have not answered for long, each once. They are left alone
// until they do.
func (c *Cache[K]) Hung() []Hung {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading.hung()
}

// Hung returns the processes whose perf maps have not answered for long, like Cache.Hung.
func (c *PerfMaps[K]) Hung() []Hung {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reading.hung()
}
