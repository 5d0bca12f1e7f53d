package samplestore

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// NodeID tells a node by the frames on the way to it, alike in all answers. 0 is none.
type NodeID uint64

// Tree is the part of a flame graph that is worth drawing.
type Tree struct {
	Frames []Frame
	Nodes  []TreeNode // parents before children; the first one is the root
	Zoom   int        // index of the node that was asked for, 0 if it is not there
	Hidden int        // nodes that were left out because they are small
}

// TreeNode is a frame in the context of its callers.
type TreeNode struct {
	ID          NodeID
	Parent      int // -1 of the root
	Frame       int // -1 of the root
	Self, Total Sides
}

// tree merges the stacks of all parts. Node 0 is the root, parents stand before children.
type tree struct {
	frames   []Frame
	frameIDs map[Frame]int32
	hashes   []uint64 // by frame
	nodes    []treeNode
	children map[[2]int32]int32 // parent and frame
}

type treeNode struct {
	id            NodeID
	parent, frame int32
	self, total   Sides
}

func newTree() *tree {
	return &tree{
		frameIDs: map[Frame]int32{},
		nodes:    []treeNode{{parent: -1, frame: -1, id: 1}},
		children: map[[2]int32]int32{},
	}
}

func (t *tree) frame(f Frame) int32 {
	id, ok := t.frameIDs[f]
	if !ok {
		id = int32(len(t.frames))
		t.frameIDs[f] = id
		t.frames = append(t.frames, f)
		h := fnv.New64a()
		for _, text := range []string{f.Name, f.Module, f.Type} {
			h.Write([]byte(text))
			h.Write([]byte{0xff}) // in no UTF-8
		}
		t.hashes = append(t.hashes, h.Sum64())
	}
	return id
}

// child returns the node for a frame below another one. Code without names is one frame,
// however many calls there are within it.
func (t *tree) child(parent, frame int32) int32 {
	if at := &t.nodes[parent]; at.frame == frame && t.frames[frame].Name == "" {
		return parent
	}
	key := [2]int32{parent, frame}
	id, ok := t.children[key]
	if !ok {
		const prime = 1099511628211 // of FNV
		hash := (uint64(t.nodes[parent].id)*prime ^ t.hashes[frame]) * prime
		id = int32(len(t.nodes))
		t.nodes = append(t.nodes, treeNode{parent: parent, frame: frame, id: NodeID(max(hash, 1))})
		t.children[key] = id
	}
	return id
}

// merge adds the stacks of a part and returns for its nodes the nodes here, 0 for those
// without samples.
func (t *tree) merge(s *scan) []int32 {
	part := s.part
	used := make([]bool, len(part.nodes))
	for i := len(part.nodes) - 1; i >= 0; i-- {
		if used[i] = used[i] || s.leafNs[i].Sum() > 0; used[i] {
			used[part.nodes[i].parent] = true
		}
	}
	frames := make([][]int32, len(part.locations))
	at := make([]int32, len(part.nodes))
	for i := range part.nodes {
		if !used[i] {
			continue
		}
		if i > 0 {
			n := part.nodes[i]
			if frames[n.location] == nil {
				for _, f := range part.locations[n.location].frames() {
					frames[n.location] = append(frames[n.location], t.frame(f))
				}
			}
			at[i] = at[n.parent]
			for _, f := range frames[n.location] {
				at[i] = t.child(at[i], f)
			}
		}
		for side, ns := range s.leafNs[i] {
			t.nodes[at[i]].self[side] += ns
		}
	}
	return at
}

// sum computes the totals.
func (t *tree) sum() {
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		for side, ns := range n.self {
			n.total[side] += ns
		}
		if i > 0 {
			for side, ns := range n.total {
				t.nodes[n.parent].total[side] += ns
			}
		}
	}
}

// find returns the node with an id, or the root.
func (t *tree) find(id NodeID) int32 {
	if id != 0 {
		for i := range t.nodes {
			if t.nodes[i].id == id {
				return int32(i)
			}
		}
	}
	return 0
}

// weight is the width of a node: with two sides each counts for its share.
func (t *tree) weight(n *treeNode) float64 {
	root := &t.nodes[0]
	var sum float64
	for side, ns := range n.total {
		if root.total[side] > 0 {
			sum += float64(ns) / float64(root.total[side])
		}
	}
	return sum
}

// cut leaves out what is too small to be seen, where the view is zoomed to a node.
func (t *tree) cut(zoom NodeID) Tree {
	target := t.find(zoom)
	under := make([]bool, len(t.nodes))
	under[target] = true
	for i := int(target) + 1; i < len(t.nodes); i++ {
		under[i] = under[t.nodes[i].parent]
	}
	keep := make([]bool, len(t.nodes))
	for at := target; at >= 0; at = t.nodes[at].parent {
		keep[at], under[at] = true, true
	}
	var weights []float64
	least := t.weight(&t.nodes[target]) / 2500
	for i := range t.nodes {
		if w := t.weight(&t.nodes[i]); under[i] && w >= least {
			weights = append(weights, w)
		}
	}
	if len(weights) > MaxNodes {
		slices.SortFunc(weights, func(a, b float64) int { return cmp.Compare(b, a) })
		least = weights[MaxNodes]
	}
	out := Tree{Frames: t.frames}
	index := make([]int, len(t.nodes))
	for i := range t.nodes {
		n := &t.nodes[i]
		if !keep[i] && (!under[i] || t.weight(n) < least || len(out.Nodes) >= MaxNodes+MaxFrames) {
			if under[i] {
				out.Hidden++
			}
			index[i] = -1
			continue
		}
		made := TreeNode{ID: n.id, Parent: -1, Frame: int(n.frame), Self: n.self, Total: n.total}
		if i > 0 {
			made.Parent = index[n.parent]
		}
		index[i] = len(out.Nodes)
		out.Nodes = append(out.Nodes, made)
	}
	out.Zoom = index[target]
	return out.compact()
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
