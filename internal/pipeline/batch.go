//go:build linux && (amd64 || arm64)

package pipeline

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// userBatchBytes is the rough cost of a user in a batch beside what was sampled of it.
const userBatchBytes = 4 << 10

// A batch is what was sampled in one interval, of each user apart: what one user has in
// it bounds nobody else.
type batch struct {
	stream      *stream
	users       map[uint32]*userBatch // by uid in the init user namespace
	last        *userBatch            // of the last sample
	bytes       int                   // of all users
	held        int                   // of all users, with what their builders have kept of batches before
	weight      weight                // of held
	startMono   uint64                // where its interval begins and ends, CLOCK_MONOTONIC
	endMono     uint64                // 0: when it is handed over
	clockOffset uint64                // from CLOCK_MONOTONIC to Unix time
	clockMono   uint64                // when that was read
	began       time.Time             // the same, on Go's clocks
	labels      int                   // bytes of label sets that their cache has let go of
	early       bool                  // one user's, before the interval has passed
	splits      map[uint32]uint64     // when users have handed over early, CLOCK_MONOTONIC
}

// A userBatch is what a batch has of one user.
type userBatch struct {
	uid       uint32
	builder   *profile.Builder
	processes map[uint64]*process.Process // by handle; held while the batch lives
	bytes     int                         // counted in the batch
	held      int                         // likewise
	startMono uint64                      // later than the batch's, if the user has handed over early
}

// maxClockError is by how much Unix time may be wrong in a batch. NTP slews both clocks alike, so it is
// as much as a thread may be interrupted for between two readings of them.
const maxClockError = 100 * time.Millisecond

// clockSet reports whether Unix time has gone ahead or back since the batch began, other than by the time
// that has passed: somebody has set it, or the machine was suspended, in which CLOCK_MONOTONIC stops.
func (b *batch) clockSet(now time.Time) bool {
	expected := time.Unix(0, int64(b.clockMono+b.clockOffset)).Add(now.Sub(b.began))
	ahead := now.Round(0).Sub(expected) // Round: by Unix time
	return ahead.Abs() > maxClockError
}

// user returns what the batch has of a user.
func (b *batch) user(uid uint32) *userBatch {
	if b.last != nil && b.last.uid == uid {
		return b.last
	}
	p := b.users[uid]
	if p == nil {
		p = b.stream.pool.take(uid)
		p.bytes, p.held, p.startMono = 0, 0, max(b.startMono, b.splits[uid])
		b.users[uid] = p
		b.count(p)
	}
	b.last = p
	return p
}

// add adds a sample to those of a user, and reports whether it is unlike those before.
func (b *batch) add(p *userBatch, s *profile.Sample) (news bool) {
	news = p.builder.Add(s)
	b.count(p)
	return news
}

// count takes what a user has now into what the batch has.
func (b *batch) count(p *userBatch) {
	bytes, held := p.builder.Bytes()+userBatchBytes, p.builder.Held()+userBatchBytes
	b.bytes += bytes - p.bytes
	b.held += held - p.held
	p.bytes, p.held = bytes, held
}

// Users with less than sparedBytes in a batch are spared when memory has run out, so that
// they do not pay for another who has taken it; not if there are more of them.
const (
	sparedBytes = 32 << 10
	sparedUsers = 64
)

// spares reports whether a user has so little that it may have more in any case.
func (b *batch) spares(uid uint32) bool {
	if len(b.users) >= sparedUsers {
		return false
	}
	p := b.users[uid]
	return p == nil || p.bytes < sparedBytes
}

// full reports whether a batch has the bytes that it may have, or as many of samples as it may
// have now: handing over what is sampled of a user makes no room where it is nothing yet.
func (b *batch) full(most, now int) bool {
	return b.bytes >= most || b.bytes-userBatchBytes*len(b.users) >= now
}

func (b *batch) samples() int {
	n := 0
	for _, p := range b.users {
		n += p.builder.Samples()
	}
	return n
}

// maxSplitUsers are looked at for who has most in a batch: to look at more takes too long.
const maxSplitUsers = 1024

// largest returns what the user has who has most: of more than maxSplitUsers, most of some of them, and no less than
// who was sampled last, so that a batch does not grow.
func (b *batch) largest() *userBatch {
	largest, seen := b.last, 0
	for _, p := range b.users {
		if largest == nil || p.bytes > largest.bytes {
			largest = p
		}
		if seen++; seen == maxSplitUsers {
			break
		}
	}
	return largest
}

// split takes what the user has who has most, as a batch of its own.
func (b *batch) split() *batch {
	largest := b.largest()
	delete(b.users, largest.uid)
	b.bytes -= largest.bytes
	b.held -= largest.held
	b.last = nil
	if b.splits == nil {
		b.splits = map[uint32]uint64{}
	}
	b.splits[largest.uid] = monotonicNow()
	return &batch{
		stream: b.stream, users: map[uint32]*userBatch{largest.uid: largest}, bytes: largest.bytes,
		held: largest.held, weight: b.weight.part(largest.held),
		startMono: largest.startMono, clockOffset: b.clockOffset, early: true,
	}
}

// byUID returns them in the order of the uids.
func (b *batch) byUID() []*userBatch {
	return slices.SortedFunc(maps.Values(b.users), func(a, b *userBatch) int { return cmp.Compare(a.uid, b.uid) })
}

// pool keeps emptied ones to be used again, mostly by the same user, whose stacks
// they know. Its methods may be called from everywhere.
type pool struct {
	options profile.Options
	memory  *budget.Memory

	mu     sync.Mutex
	unused []*userBatch // the longest unused first
	bytes  int
	weight weight // of bytes
}

// Bounds of a pool.
const (
	maxPooled      = 64
	maxPooledBytes = 8 << 20
)

func (p *pool) take(uid uint32) *userBatch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, known := range p.unused {
		if known.uid == uid {
			p.unused = slices.Delete(p.unused, i, i+1)
			p.bytes -= known.builder.Held()
			p.weigh()
			return known
		}
	}
	return &userBatch{uid: uid, builder: profile.NewBuilder(p.options), processes: map[uint64]*process.Process{}}
}

// give empties one. Where there are too many, those unused for longest go; all of
// them, where memory is short.
func (p *pool) give(of *userBatch) {
	of.builder.Reset()
	clear(of.processes)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unused = append(p.unused, of)
	p.bytes += of.builder.Held()
	p.weigh()
	tight := p.memory.Pressure() >= budget.Tight
	for len(p.unused) > 0 && (tight || len(p.unused) > maxPooled || p.bytes > maxPooledBytes) {
		p.bytes -= p.unused[0].builder.Held()
		p.unused = slices.Delete(p.unused, 0, 1)
	}
	p.weigh()
}

func (p *pool) weigh() { p.weight.set(p.memory, budget.OfBatches, p.bytes) }
