//go:build linux && (amd64 || arm64)

package pipeline

import (
	"slices"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// partBytes is the rough cost of a user in a batch beside what was sampled of it.
const partBytes = 4 << 10

// A batch is what was sampled in one interval, of each user apart: what one user has in
// it bounds nobody else.
type batch struct {
	lane        *lane
	parts       map[uint32]*part  // by uid in the init user namespace
	last        *part             // of the last sample
	bytes       int               // of all parts
	startMono   uint64            // CLOCK_MONOTONIC
	endMono     uint64            // when it was handed over
	clockOffset uint64            // from CLOCK_MONOTONIC to Unix time
	labels      int               // bytes of label sets that their cache has let go of
	early       bool              // one user's, before the interval has passed
	splits      map[uint32]uint64 // when users have handed over early, CLOCK_MONOTONIC
}

// A part is what a batch has of one user.
type part struct {
	uid       uint32
	builder   *profile.Builder
	processes map[uint64]*process.Process // by handle; keeps them while the batch lives
	bytes     int                         // counted in the batch
	held      weight                      // of builder
	startMono uint64                      // later than the batch's, if the user has handed over early
}

// part returns that of a user.
func (b *batch) part(uid uint32) *part {
	if b.last != nil && b.last.uid == uid {
		return b.last
	}
	p := b.parts[uid]
	if p == nil {
		p = b.lane.parts.take(uid)
		p.bytes, p.startMono = partBytes, max(b.startMono, b.splits[uid])
		b.bytes += partBytes
		b.parts[uid] = p
	}
	b.last = p
	return p
}

// add adds a sample to a part.
func (b *batch) add(p *part, s *profile.Sample) {
	p.builder.Add(s)
	now := p.builder.Bytes() + partBytes
	b.bytes += now - p.bytes
	p.bytes = now
}

// Users with less than sparedBytes in a batch are spared when memory has run out, so that
// they do not pay for another who has taken it; not if there are more of them.
const (
	sparedBytes = 32 << 10
	sparedUsers = 64
)

// spares reports whether a user has so little that it may have more in any case.
func (b *batch) spares(uid uint32) bool {
	if len(b.parts) >= sparedUsers {
		return false
	}
	p := b.parts[uid]
	return p == nil || p.bytes < sparedBytes
}

func (b *batch) samples() int {
	n := 0
	for _, p := range b.parts {
		n += p.builder.Samples()
	}
	return n
}

// maxSplitUsers in a batch hand over one by one; finding the largest of more takes too long.
const maxSplitUsers = 1024

// split takes the largest part, as a batch of its own; nil if there are too many.
func (b *batch) split() *batch {
	if len(b.parts) > maxSplitUsers {
		return nil
	}
	var largest *part
	for _, p := range b.parts {
		if largest == nil || p.bytes > largest.bytes {
			largest = p
		}
	}
	delete(b.parts, largest.uid)
	b.bytes -= largest.bytes
	b.last = nil
	if b.splits == nil {
		b.splits = map[uint32]uint64{}
	}
	b.splits[largest.uid] = monotonicNow()
	return &batch{
		lane: b.lane, parts: map[uint32]*part{largest.uid: largest}, bytes: largest.bytes,
		startMono: largest.startMono, clockOffset: b.clockOffset, early: true,
	}
}

// byUID returns the parts in the order of the users.
func (b *batch) byUID() []*part {
	list := make([]*part, 0, len(b.parts))
	for _, p := range b.parts {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *part) int { return int(int64(a.uid) - int64(b.uid)) })
	return list
}

// partPool keeps emptied parts to be used again, mostly by the same user, whose stacks
// they know. Its methods may be called from everywhere.
type partPool struct {
	options profile.Options
	memory  *budget.Memory

	mu    sync.Mutex
	parts []*part // the longest unused first
	bytes int
}

// Bounds of a partPool.
const (
	maxPooledParts = 64
	maxPooledBytes = 8 << 20
)

func (p *partPool) take(uid uint32) *part {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, known := range p.parts {
		if known.uid == uid {
			p.parts = slices.Delete(p.parts, i, i+1)
			p.bytes -= known.builder.Held()
			return known
		}
	}
	return &part{uid: uid, builder: profile.NewBuilder(p.options), processes: map[uint64]*process.Process{}}
}

// give empties a part. Where there are too many, those unused for longest go; all of
// them, where memory is short.
func (p *partPool) give(of *part) {
	of.builder.Reset()
	clear(of.processes)
	of.held.set(p.memory, budget.OfBatches, of.builder.Held())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts = append(p.parts, of)
	p.bytes += of.builder.Held()
	tight := p.memory.Pressure() >= budget.Tight
	for len(p.parts) > 0 && (tight || len(p.parts) > maxPooledParts || p.bytes > maxPooledBytes) {
		unused := p.parts[0]
		unused.held.forget(p.memory, budget.OfBatches)
		p.bytes -= unused.builder.Held()
		p.parts = slices.Delete(p.parts, 0, 1)
	}
}
