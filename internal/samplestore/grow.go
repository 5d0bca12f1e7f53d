package samplestore

import "slices"

// treeNode is a frame of the stacks that a query selects in a part, in a group if the tree has
// any. Parents stand before children; node 0 is the root.
type treeNode struct {
	at          uint32 // of the part's trie; with groupMark the number of a group
	parent      int32
	first, next int32 // a child, and another child of the parent; 0: none
	total       Sides
}

const groupMark = 1 << 31

// groupsOf returns the frames of the first level of a grouped tree: the values with the most
// time, and all others.
func groupsOf(scans []*scan, q *Query) []Frame {
	if q.Group == "" {
		return nil
	}
	var frames []Frame
	for _, v := range topValues(scans, q.Group, MaxGroups, func(s *scan) pairSums { return s.held }) {
		f := Frame{Name: v.Text, Group: GroupValue}
		if !v.Present {
			f.Group = GroupNone
		}
		frames = append(frames, f)
	}
	return append(frames, Frame{Group: GroupOthers})
}

// grower makes the tree of a part. Its memory, but for the tree, is used again.
type grower struct {
	trie  []trieNode
	tree  []treeNode
	nodes []treeNode // memory for a tree whose size is not known before
	sums  []Sides    // by trie node
	slots []int32    // by trie node: where it is in the tree, if it is there and of this group
	begin int32      // the first node that can be of this group
	root  int32      // of the group
	way   []uint32
}

// grow makes the tree of what was selected.
func (s *scan) grow(g *grower, groups []Frame) {
	if g.slots = g.slots[:cap(g.slots)]; len(g.slots) < len(s.part.trie) {
		g.slots = make([]int32, len(s.part.trie)*5/4)
	}
	g.trie, g.tree, g.begin, g.root = s.part.trie, []treeNode{{}}, 1, 0
	if groups == nil {
		s.growAll(g)
	} else {
		s.growGroups(g, groups)
	}
	g.link()
	s.tree, s.groups = g.tree, groups
	if groups != nil {
		s.tree, g.nodes = slices.Clone(g.tree), g.tree[:0]
	}
	s.sums = s.sumFrames()
}

// growAll adds the rows where their stacks are in the trie, and takes over what has any: passes
// over arrays in their order are much cheaper than going from node to node.
func (s *scan) growAll(g *grower) {
	n := len(s.part.trie)
	if cap(g.sums) < n {
		g.sums = make([]Sides, n*5/4)
	}
	sums := g.sums[:n]
	clear(sums)
	s.selected(func(r *row, side int8) { sums[r.at][side] += r.ns })
	for i := n - 1; i > 0; i-- {
		sums[s.part.trie[i].parent].add(sums[i])
	}
	count := 1
	for i := 1; i < n; i++ {
		if sums[i].Sum() > 0 {
			count++
		}
	}
	g.tree = append(make([]treeNode, 0, count), treeNode{total: sums[0]})
	g.slots[0] = 0
	for i := 1; i < n; i++ {
		if sums[i].Sum() > 0 {
			g.slots[i] = int32(len(g.tree))
			g.tree = append(g.tree, treeNode{at: uint32(i), parent: g.slots[s.part.trie[i].parent], total: sums[i]})
		}
	}
}

// growGroups adds the rows group by group, so that one slot for each trie node is enough.
func (s *scan) growGroups(g *grower, groups []Frame) {
	type selected struct {
		ns   int64
		at   uint32
		side int8
	}
	groupOf := s.classes(s.q.Group, groupValues(groups))
	group := func(r *row) int {
		if at := groupOf[r.set]; at >= 0 {
			return int(at)
		}
		return len(groups) - 1
	}
	next := make([]int, len(groups)+1) // where the next row of a group goes
	s.selected(func(r *row, _ int8) { next[group(r)+1]++ })
	for i := range groups {
		next[i+1] += next[i]
	}
	rows := make([]selected, next[len(groups)])
	s.selected(func(r *row, side int8) {
		at := &next[group(r)]
		rows[*at] = selected{r.ns, r.at, side}
		*at++
	})
	g.tree = append(g.nodes[:0], g.tree...)
	begin := 0
	for i := range groups {
		mine := rows[begin:next[i]]
		if begin = next[i]; len(mine) == 0 {
			continue
		}
		g.root = int32(len(g.tree))
		g.begin = g.root + 1
		g.tree = append(g.tree, treeNode{at: groupMark | uint32(i)})
		for _, r := range mine {
			g.add(r.at, r.side, r.ns)
		}
	}
	for i := len(g.tree) - 1; i > 0; i-- {
		g.tree[g.tree[i].parent].total.add(g.tree[i].total)
	}
}

// groupValues are the values of groups, but for the others.
func groupValues(groups []Frame) (values []Value) {
	for _, f := range groups {
		if f.Group != GroupOthers {
			values = append(values, Value{Text: f.Name, Present: f.Group == GroupValue})
		}
	}
	return values
}

// selected calls f with each row that is on a side.
func (s *scan) selected(f func(r *row, side int8)) {
	s.visit(func(r *row, failed, side int8, _ bool) {
		if failed == noFilter && side >= 0 {
			f(r, side)
		}
	})
}

// add adds time to the node of a stack, and makes those on the way to it that are not there.
func (g *grower) add(at uint32, side int8, ns int64) {
	g.way = g.way[:0]
	node := g.root
	for ; at != 0; at = g.trie[at].parent {
		if i := g.slots[at]; i >= g.begin && int(i) < len(g.tree) && g.tree[i].at == at {
			node = i
			break
		}
		g.way = append(g.way, at)
	}
	for i := len(g.way) - 1; i >= 0; i-- {
		g.slots[g.way[i]] = int32(len(g.tree))
		g.tree = append(g.tree, treeNode{at: g.way[i], parent: node})
		node = int32(len(g.tree)) - 1
	}
	g.tree[node].total[side] += ns
}

// link makes lists of children.
func (g *grower) link() {
	for i := len(g.tree) - 1; i > 0; i-- {
		n := &g.tree[i]
		p := &g.tree[n.parent]
		n.next, p.first = p.first, int32(i)
	}
}
