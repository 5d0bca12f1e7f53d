package symbol

import (
	"cmp"
	"container/heap"
	"runtime"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

// ranges are functions that do not overlap, sorted by their start. Of those that
// would, the one that was added later has what both claim. entry.name is an offset
// in names as in entries.
type ranges struct {
	entries
}

// find returns the index of the function that holds an address, or -1.
func (r *ranges) find(addr uint64) int {
	i := r.before(addr)
	if i < 0 || addr-r.list[i].start >= uint64(r.list[i].size) {
		return -1
	}
	return i
}

// merge returns the ranges with functions added; added is in the order in which they
// came. complete is false if they would take more than maxBytes: then those with the
// highest addresses are missing.
func (r *ranges) merge(added *entries, maxBytes int) (merged *ranges, complete bool) {
	defer runtime.KeepAlive(r) // its memory may be given back with it
	s := sweep{claims: make([]claim, 0, len(r.list)+len(added.list))}
	for _, e := range r.list {
		s.claims = append(s.claims, claim{start: e.start, size: e.size, name: e.name})
	}
	for i, e := range added.list {
		s.claims = append(s.claims, claim{start: e.start, size: e.size, name: e.name, order: int32(i) + 1})
	}
	s.run(maxBytes/entryBytes + 1)
	nameOf := func(c *claim) []byte {
		if c.order > 0 {
			return added.text(c.name)
		}
		return r.text(c.name)
	}
	// A name that several ranges have is kept once.
	offsets := map[nameKey]uint32{}
	n, nameBytes := 0, 0
	for ; n < len(s.out); n++ {
		c := &s.out[n]
		size := 0
		if _, ok := offsets[c.key()]; !ok {
			size = len(nameOf(c)) + 1
		}
		if (n+1)*entryBytes+nameBytes+size > maxBytes {
			break
		}
		if size > 0 {
			offsets[c.key()] = uint32(nameBytes)
			nameBytes += size
		}
	}
	list, names, outside := allocate(n, nameBytes)
	merged = &ranges{}
	if outside != nil {
		runtime.AddCleanup(merged, offheap.Unmap, outside)
	}
	for i := range list {
		c := &s.out[i]
		offset := offsets[c.key()]
		if int(offset) == len(names) {
			names = append(append(names, nameOf(c)...), 0)
		}
		list[i] = entry{c.start, c.size, offset}
	}
	merged.list, merged.names = list, names
	return merged, n == len(s.out)
}

// claim is a function's claim to a range of addresses. A higher order came later; 0 is
// for all that were there before, which do not overlap.
type claim struct {
	start uint64
	size  uint32
	name  uint32
	order int32
}

// nameKey tells names apart: those that were there before, and those that are added.
type nameKey struct {
	added bool
	name  uint32
}

func (c *claim) key() nameKey { return nameKey{c.order > 0, c.name} }
func (c *claim) end() uint64  { return c.start + uint64(c.size) }

// sweep goes through claims in the order of their addresses and finds out which one
// wins where.
type sweep struct {
	claims []claim
	active claimHeap
	out    []claim
}

// run stops when there are so many pieces as are asked for.
func (s *sweep) run(most int) {
	slices.SortFunc(s.claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order))
	})
	next, at := 0, uint64(0)
	for len(s.out) < most && (next < len(s.claims) || len(s.active) > 0) {
		if len(s.active) == 0 {
			at = s.claims[next].start
		}
		for next < len(s.claims) && s.claims[next].start <= at {
			heap.Push(&s.active, s.claims[next])
			next++
		}
		top := s.active[0]
		if top.end() <= at {
			heap.Pop(&s.active)
			continue
		}
		// It holds up to its end or the next claim, whichever comes first.
		end := top.end()
		if next < len(s.claims) {
			end = min(end, s.claims[next].start)
		}
		s.emit(top, at, end)
		at = end
	}
}

// emit enters a piece of a claim, or makes the last one longer.
func (s *sweep) emit(c claim, start, end uint64) {
	if n := len(s.out); n > 0 && s.out[n-1].key() == c.key() && s.out[n-1].order == c.order && s.out[n-1].end() == start {
		s.out[n-1].size += uint32(end - start)
		return
	}
	c.start, c.size = start, uint32(end-start)
	s.out = append(s.out, c)
}

// claimHeap has the latest claim on top.
type claimHeap []claim

func (h claimHeap) Len() int           { return len(h) }
func (h claimHeap) Less(i, j int) bool { return h[i].order > h[j].order }
func (h claimHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *claimHeap) Push(x any)        { *h = append(*h, x.(claim)) }
func (h *claimHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}
