package samplestore

import (
	"container/heap"
	"hash/fnv"
	"hash/maphash"
	"slices"
)

// NodeID tells a node by the frames on the way to it, alike in all answers. 0 is none.
type NodeID uint64

// Tree is the part of a flame graph that is worth drawing.
type Tree struct {
	Frames []Frame
	Nodes  []TreeNode // parents before children; the first one is the root
	Zoom   int        // index of the node that was asked for, 0 if it is not there
	Hidden int        // nodes that were left out, below nodes that were not, because they are small
}

// TreeNode is a frame in the context of its callers.
type TreeNode struct {
	ID          NodeID
	Parent      int // -1 of the root
	Frame       int // -1 of the root
	Self, Total Sides
}

const rootID NodeID = 1

// childID is the id of a frame below a node.
func childID(parent NodeID, frame uint64) NodeID {
	const prime = 1099511628211 // of FNV
	return NodeID(max((uint64(parent)*prime^frame)*prime, uint64(rootID)+1))
}

func frameHash(f Frame) uint64 {
	h := fnv.New64a()
	for _, text := range []string{f.Name, f.Module, f.Type} {
		h.Write([]byte(text))
		h.Write([]byte{0xff}) // in no UTF-8
	}
	h.Write([]byte{byte(f.Group)})
	return h.Sum64()
}

// merge puts what was selected in parts together as a tree, node by node from the root: what is too
// small to be drawn is never looked into.
type merge struct {
	scans  []*scan
	groups []Frame

	// Frames have a number here. They are found by a hash with a seed of the store's, so that
	// nobody can choose two of one hash.
	frames []Frame
	ids    map[uint64]int32
	known  [][]int32 // by part and frame there: the number here, and 1
	seed   maphash.Seed

	// What children of one node are found with: by number of the frame their times, and where one
	// of them stands in the list of those that are drawn.
	totals []Sides
	drawn  []int32
	steps  []step
}

// grown adds up what parts have by stack, as far as that was not done yet, and keeps it.
func (s *Store) grown(scans []*scan, q *Query, memory *scratch) *merge {
	m := &merge{scans: scans, groups: groupsOf(scans, q), ids: map[uint64]int32{}, known: make([][]int32, len(scans)), seed: s.seed}
	for i, scan := range scans {
		if scan.grown == nil || !slices.Equal(scan.groups, m.groups) {
			other := *scan // others may be looking at it
			other.grow(memory, m.groups)
			m.scans[i] = &other
		}
		m.known[i] = make([]int32, len(scan.part.frames))
	}
	s.kept.put(q.selection(), m.scans)
	return m
}

// merged is a node of several parts.
type merged struct {
	frame   int32 // -1 of the root
	total   Sides
	members []member
}

// member is a place in the trie of a part, and what was selected there and below, by index in
// the stretch of a group.
type member struct {
	part, group int32 // group -1: above all groups
	at          uint32
	from, to    int32
}

func (m *merge) root() *merged {
	r := &merged{frame: -1}
	for i, s := range m.scans {
		all := member{part: int32(i), to: int32(len(s.grown[0].at))}
		if m.groups == nil {
			r.members = append(r.members, all)
			r.total.add(m.ns(all))
			continue
		}
		r.members = append(r.members, member{part: int32(i), group: -1})
		for g := range s.grown {
			r.total.add(s.grown[g].ns(0, int32(len(s.grown[g].at))))
		}
	}
	return r
}

// local returns the number here of a frame of a part.
func (m *merge) local(part int, frame uint32) int32 {
	known := &m.known[part][frame]
	if *known == 0 {
		p := m.scans[part].part
		*known = m.id(p.frames[frame], p.hashes[frame]) + 1
	}
	return *known - 1
}

func (m *merge) id(f Frame, hash uint64) int32 {
	id, ok := m.ids[hash]
	if !ok {
		id = int32(len(m.frames))
		m.frames = append(m.frames, f)
		m.ids[hash] = id
	}
	return id
}

// step is what a part has below a node, with the number of its frame here.
type step struct {
	member
	frame int32
}

// below are children of a node.
type below struct {
	drawn  []*merged // in the order of the tries, part by part
	hidden int       // those that are too small
	total  Sides     // of all
}

// children returns what is below a node. What has less than the least weight is only counted.
func (m *merge) children(n *merged, least float64, weight func(Sides) float64) (all below) {
	m.steps = m.steps[:0]
	for _, at := range n.members {
		m.steps = m.below(m.steps, at)
	}
	if n := len(m.frames) - len(m.totals); n > 0 {
		m.totals, m.drawn = append(m.totals, make([]Sides, n)...), append(m.drawn, make([]int32, n)...)
	}
	const unseen, small = 0, -1 // in place of 1 and the index of what is drawn
	for i := range m.steps {
		m.totals[m.steps[i].frame].add(m.ns(m.steps[i].member))
	}
	for i := range m.steps {
		frame := m.steps[i].frame
		if m.drawn[frame] == unseen {
			total := m.totals[frame]
			all.total.add(total)
			if weight(total) < least {
				m.drawn[frame] = small
				all.hidden++
			} else {
				all.drawn = append(all.drawn, &merged{frame: frame, total: total})
				m.drawn[frame] = int32(len(all.drawn))
			}
		}
		if at := m.drawn[frame]; at != small {
			made := all.drawn[at-1]
			made.members = append(made.members, m.steps[i].member)
		}
	}
	for i := range m.steps {
		m.totals[m.steps[i].frame], m.drawn[m.steps[i].frame] = Sides{}, unseen
	}
	return all
}

// ns is the time of a member.
func (m *merge) ns(of member) Sides {
	return m.scans[of.part].grown[of.group].ns(of.from, of.to)
}

// below appends what is below a member.
func (m *merge) below(to []step, of member) []step {
	s := m.scans[of.part]
	if of.group < 0 {
		for g := range s.grown {
			if n := len(s.grown[g].at); n > 0 {
				f := m.groups[g]
				to = append(to, step{member{part: of.part, group: int32(g), to: int32(n)}, m.id(f, maphash.Comparable(m.seed, f))})
			}
		}
		return to
	}
	places := &s.grown[of.group]
	from := of.from
	if from < of.to && places.at[from] == of.at {
		from++ // its own
	}
	for child := of.at + 1; from < of.to; {
		end := s.part.ends[child]
		if end <= places.at[from] {
			child = end
			continue
		}
		next := places.search(from, of.to, end)
		to = append(to, step{member{of.part, of.group, child, from, next}, m.local(int(of.part), s.part.trie[child].frame&frameBits)})
		child, from = end, next
	}
	return to
}

// waiting are nodes to be drawn, the one with the most time first.
type waiting []item

type item struct {
	node   *merged
	parent int
	weight float64
	order  int
}

func (w waiting) Len() int      { return len(w) }
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w waiting) Less(i, j int) bool {
	if w[i].weight != w[j].weight {
		return w[i].weight > w[j].weight
	}
	return w[i].order < w[j].order
}
func (w *waiting) Push(x any) { *w = append(*w, x.(item)) }
func (w *waiting) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// cut draws the nodes with the most time, where the view is zoomed to a node: the way to it, and
// what is below.
func (m *merge) cut(zoom NodeID) Tree {
	var out Tree
	root := m.root()
	emit := func(n *merged, parent int) int {
		made := TreeNode{ID: rootID, Parent: parent, Frame: int(n.frame), Self: n.total, Total: n.total}
		if parent >= 0 {
			made.ID = childID(out.Nodes[parent].ID, frameHash(m.frames[n.frame]))
		}
		out.Nodes = append(out.Nodes, made)
		return len(out.Nodes) - 1
	}
	weight := func(ns Sides) float64 { return share(ns, root.total) }
	target, at := root, emit(root, -1)
	for _, frame := range m.locate(zoom) {
		all := m.children(target, 0, weight)
		i := slices.IndexFunc(all.drawn, func(c *merged) bool { return m.frames[c.frame] == frame })
		if i < 0 {
			break // never: it was found
		}
		out.Nodes[at].Self.subtract(all.total)
		target, at = all.drawn[i], emit(all.drawn[i], at)
	}
	out.Zoom = at
	least := weight(target.total) / 2500
	var next waiting
	order := 0
	expand := func(n *merged, at int) {
		all := m.children(n, least, weight)
		out.Nodes[at].Self.subtract(all.total)
		out.Hidden += all.hidden
		for _, c := range all.drawn {
			order++
			heap.Push(&next, item{c, at, weight(c.total), order})
		}
	}
	for expand(target, at); len(next) > 0 && len(out.Nodes)-out.Zoom <= MaxNodes; {
		i := heap.Pop(&next).(item)
		expand(i.node, emit(i.node, i.parent))
	}
	out.Hidden += len(next)
	out.Frames = m.frames
	return out.compact()
}

// share is the width of a node: with two sides each counts for its share.
func share(of, all Sides) float64 {
	var sum float64
	for side, ns := range of {
		if all[side] > 0 {
			sum += float64(ns) / float64(all[side])
		}
	}
	return sum
}

// locate returns the frames on the way to the node with an id, none if it is not there.
func (m *merge) locate(zoom NodeID) []Frame {
	if zoom == 0 || zoom == rootID {
		return nil
	}
	hashes := map[int32]uint64{}
	var way []Frame
	var waiting []step // below the nodes that were come by
	var look func(at member, id NodeID) bool
	look = func(at member, id NodeID) bool {
		first := len(waiting)
		waiting = m.below(waiting, at)
		for i := first; i < len(waiting); i++ {
			c := waiting[i]
			hash, ok := hashes[c.frame]
			if !ok {
				hash = frameHash(m.frames[c.frame])
				hashes[c.frame] = hash
			}
			if below := childID(id, hash); below == zoom || look(c.member, below) {
				way = append(way, m.frames[c.frame])
				return true
			}
		}
		waiting = waiting[:first]
		return false
	}
	for _, at := range m.root().members {
		if look(at, rootID) {
			slices.Reverse(way)
			break
		}
	}
	return way
}

// compact leaves only the frames that are used.
func (t Tree) compact() Tree {
	index := map[int]int{}
	var used []Frame
	for i := range t.Nodes {
		f := t.Nodes[i].Frame
		if f < 0 {
			continue
		}
		if _, ok := index[f]; !ok {
			index[f] = len(used)
			used = append(used, t.Frames[f])
		}
		t.Nodes[i].Frame = index[f]
	}
	t.Frames = used
	return t
}
