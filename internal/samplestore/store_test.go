package samplestore

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// made is a sample of a test, with what it takes to answer questions about it naively.
type made struct {
	kind   Kind
	labels map[string]string
	frames []Frame // root first
	ms, ns int64
}

func (m *made) sample() *Sample {
	s := &Sample{Kind: m.kind, Points: []Point{{TimeNs: m.ms * 1e6, Hits: 1, Ns: m.ns}}}
	for i := range 5 { // in a fixed order
		if v, ok := m.labels[fmt.Sprint("key", i)]; ok {
			s.Labels = append(s.Labels, Label{Key: fmt.Sprint("key", i), Value: v})
		}
	}
	for i := len(m.frames) - 1; i >= 0; i-- {
		f := m.frames[i]
		s.Stack = append(s.Stack, &Location{Type: f.Type, Mapping: Mapping{File: f.Module}, Lines: []Line{{Function: Function{Name: f.Name}}}})
	}
	return s
}

func fill(s *Store, all []made) {
	for len(all) > 0 {
		n := min(len(all), 100)
		s.Batch(func(add func(*Sample)) {
			for i := range all[:n] {
				add(all[i].sample())
			}
		})
		all = all[n:]
	}
}

func random(n int) []made {
	r := rand.New(rand.NewPCG(7, 7))
	all := make([]made, n)
	for i := range all {
		m := &all[i]
		m.kind = Kind(r.IntN(2))
		m.ms, m.ns = 1_000_000+r.Int64N(60_000), 1+r.Int64N(1000)
		m.labels = map[string]string{}
		for key := range 3 {
			if v := r.IntN(4); v > 0 {
				m.labels[fmt.Sprint("key", key)] = fmt.Sprint("value", v)
			}
		}
		for range 1 + r.IntN(8) {
			f := r.IntN(12)
			m.frames = append(m.frames, Frame{Name: fmt.Sprint("Function", f), Module: fmt.Sprint("module", f%3), Type: fmt.Sprint("type", f%2)})
		}
	}
	return all
}

// selects is the naive twin of a scan; side is that of a comparison.
func (m *made) selects(q *Query, but string) (side int, ok bool) {
	has := func(key string) Value {
		v, ok := m.labels[key]
		return Value{Text: v, Present: ok}
	}
	times := q.Compare != nil && q.Compare.Times != nil
	if m.kind != q.Kind || !times && q.ToMs != 0 && (m.ms < q.FromMs || m.ms >= q.ToMs) {
		return 0, false
	}
	for _, f := range q.Filters {
		any := f.Key == but
		for _, v := range f.Values {
			any = any || v == has(f.Key)
		}
		if !any {
			return 0, false
		}
	}
	var wanted, found [properties]bool
	for _, f := range q.Frames {
		wanted[f.Property] = true
		for _, frame := range m.frames {
			found[f.Property] = found[f.Property] || f.matches(frame)
		}
	}
	if wanted != found {
		return 0, false
	}
	if q.Compare == nil {
		return 0, true
	}
	if times {
		for side, r := range q.Compare.Times {
			if m.ms >= r.FromMs && m.ms < r.ToMs {
				return side, true
			}
		}
		return 0, false
	}
	switch has(q.Compare.Key) {
	case q.Compare.A:
		return 0, true
	case q.Compare.B:
		return 1, true
	}
	return 0, but != ""
}

func text(s string) Value { return Value{Text: s, Present: true} }

func queries() map[string]*Query {
	return map[string]*Query{
		"all":      {},
		"off CPU":  {Kind: OffCPU},
		"range":    {FromMs: 1_010_000, ToMs: 1_020_000},
		"label":    {Filters: []Filter{{Key: "key0", Values: []Value{text("value1")}}}},
		"labels":   {Filters: []Filter{{Key: "key0", Values: []Value{text("value1"), text("value2")}}, {Key: "key1", Values: []Value{{}}}}},
		"nothing":  {Filters: []Filter{{Key: "key0", Values: []Value{text("no such value")}}}},
		"absent":   {Filters: []Filter{{Key: "no such key", Values: []Value{{}}}}},
		"function": {Frames: []FrameFilter{{ByFunction, "Function3"}}},
		"module":   {Frames: []FrameFilter{{ByModule, "module1"}, {ByType, "type0"}}},
		"modules":  {Frames: []FrameFilter{{ByModule, "module1"}, {ByType, "type0"}, {ByModule, "module2"}, {ByFunction, "Function3"}, {ByFunction, "Function4"}}},
		"no such":  {Frames: []FrameFilter{{ByModule, "no such module"}}, FromMs: 1_010_000, ToMs: 1_020_000},
		"compare":  {Compare: &Compare{Key: "key2", A: text("value1"), B: text("value3")}},
		"times":    {FromMs: 1, ToMs: 2, Compare: &Compare{Times: &[2]Range{{1_010_000, 1_030_000}, {1_020_000, 1_050_000}}}, Filters: []Filter{{Key: "key0", Values: []Value{text("value1")}}}},
		"to none": {
			Compare: &Compare{Key: "key2", A: Value{}, B: text("value3")}, FromMs: 1_010_000, ToMs: 1_050_000,
			Filters: []Filter{{Key: "key0", Values: []Value{text("value1")}}}, Frames: []FrameFilter{{ByModule, "module1"}},
		},
	}
}

// TestAgainstNaive compares every sum of an answer with one made sample by sample.
func TestAgainstNaive(t *testing.T) {
	all := random(5000)
	s := New(1 << 30)
	for i := range 5 {
		fill(s, all[1000*i:1000*(i+1)])
		s.all[i].seal()
		s.all = append(s.all, newSegment(s.seed)) // before there is need for it
	}
	for name, q := range queries() {
		t.Run(name, func(t *testing.T) {
			q.By, q.Buckets, q.Search = "key1", 60, "function1"
			s.Query(&Query{}) // another selection is kept
			for _, first := range []string{"", "Function2"} {
				other := *q
				other.Search, other.By = first, "key2"
				s.Query(&other) // the same
			}
			v := s.Query(q)
			var hits, ns, found Sides
			functions := map[Frame]*FunctionSum{}
			for i := range all {
				m := &all[i]
				side, ok := m.selects(q, "")
				if !ok {
					continue
				}
				hits[side]++
				ns[side] += m.ns
				matched, seen := false, map[Frame]bool{}
				for j, f := range m.frames {
					if functions[f] == nil {
						functions[f] = &FunctionSum{Frame: f}
					}
					if !seen[f] {
						functions[f].Total[side] += m.ns
					}
					if j == len(m.frames)-1 {
						functions[f].Self[side] += m.ns
					}
					seen[f] = true
					matched = matched || f.Name == "Function1" || f.Name == "Function10" || f.Name == "Function11"
				}
				if matched {
					found[side] += m.ns
				}
			}
			require.Equal(t, hits, v.Hits)
			require.Equal(t, ns, v.Ns)
			require.Equal(t, found, v.Found)
			require.Equal(t, ns, v.Tree.Nodes[0].Total)
			for _, f := range v.Functions {
				require.Contains(t, f.Frame.Name, "Function1")
				require.Equal(t, *functions[f.Frame], f)
			}
			requireChoices(t, all, q, ByModule, &v.Modules)
			requireChoices(t, all, q, ByType, &v.Types)
			requireFacets(t, all, q, &v)
			requireSeries(t, all, q, &v)
			requireTree(t, &v.Tree)
			requireNaiveTree(t, all, q, &v.Tree, hits.Sum() > 0)
			grouped := *q
			grouped.Group = "key0"
			tree := s.Query(&grouped).Tree
			requireTree(t, &tree)
			requireNaiveTree(t, all, &grouped, &tree, hits.Sum() > 0)
			requireExport(t, s, q, hits, ns)
		})
	}
}

func requireFacets(t *testing.T, all []made, q *Query, v *View) {
	t.Helper()
	for _, f := range v.Facets {
		var total int64
		sums := map[string]int64{}
		for i := range all {
			if _, ok := all[i].selects(withoutSides(q), f.Key); ok {
				total += all[i].ns
				if text, ok := all[i].labels[f.Key]; ok {
					sums[text] += all[i].ns
				}
			}
		}
		require.Equal(t, total, f.Ns, f.Key)
		var covered int64
		for _, ns := range sums {
			covered += ns
		}
		require.Equal(t, covered, f.Covered, f.Key)
		require.Len(t, f.Values, len(sums), f.Key)
		for _, value := range f.Values {
			require.Equal(t, sums[value.Text], value.Ns, value.Text)
		}
	}
}

// withoutSides selects for facets, which do not tell the values that are compared apart.
func withoutSides(q *Query) *Query {
	all := *q
	if q.Compare != nil && q.Compare.Times == nil {
		all.Compare = nil
	}
	return &all
}

func requireSeries(t *testing.T, all []made, q *Query, v *View) {
	t.Helper()
	everything := *q
	everything.FromMs, everything.ToMs, everything.Compare = 0, 0, nil
	want := map[Value][]int64{}
	for i := range all {
		if _, ok := all[i].selects(&everything, ""); ok {
			text, present := all[i].labels[q.By]
			value := Value{Text: text, Present: present}
			if want[value] == nil {
				want[value] = make([]int64, v.Series.Buckets)
			}
			want[value][(all[i].ms-v.Series.FromMs)/v.Series.StepMs] += all[i].ns
		}
	}
	require.Len(t, v.Series.Values, len(want))
	for _, value := range v.Series.Values {
		require.Equal(t, want[value.Value], value.Ns)
	}
}

func requireTree(t *testing.T, tree *Tree) {
	t.Helper()
	below := make([]Sides, len(tree.Nodes))
	for i := len(tree.Nodes) - 1; i > 0; i-- {
		below[tree.Nodes[i].Parent].add(tree.Nodes[i].Total)
	}
	for i, n := range tree.Nodes {
		require.Less(t, n.Parent, i)
		for side := range 2 {
			require.LessOrEqual(t, below[i][side]+n.Self[side], n.Total[side])
			if tree.Hidden == 0 {
				require.Equal(t, n.Total[side], below[i][side]+n.Self[side])
			}
		}
	}
}

// requireNaiveTree compares every node with sums by the whole way to it. In a grouped tree that
// begins with the value of the label.
func requireNaiveTree(t *testing.T, all []made, q *Query, tree *Tree, some bool) {
	t.Helper()
	type sums struct{ self, total Sides }
	want := map[string]*sums{"": {}}
	for i := range all {
		m := &all[i]
		side, ok := m.selects(q, "")
		if !ok {
			continue
		}
		frames := m.frames
		if q.Group != "" {
			value, present := m.labels[q.Group]
			group := Frame{Name: value, Group: GroupValue}
			if !present {
				group.Group = GroupNone
			}
			frames = append([]Frame{group}, frames...)
		}
		way := ""
		want[way].total[side] += m.ns
		for _, f := range frames {
			way += wayOf(f)
			if want[way] == nil {
				want[way] = &sums{}
			}
			want[way].total[side] += m.ns
		}
		want[way].self[side] += m.ns
	}
	if tree.Hidden == 0 {
		require.Len(t, tree.Nodes, len(want))
	}
	ways := make([]string, len(tree.Nodes))
	for i, n := range tree.Nodes {
		if i > 0 {
			ways[i] = ways[n.Parent] + wayOf(tree.Frames[n.Frame])
		}
		if w := want[ways[i]]; w == nil || w.total != n.Total || w.self != n.Self { // require is slow
			require.Failf(t, "another sum", "%s: %v is %v", ways[i], n, w)
		}
	}
	require.Equal(t, some, len(tree.Nodes) > 1)
}

func wayOf(f Frame) string {
	return f.Name + "/" + f.Module + "/" + f.Type + "/" + string(rune('0'+f.Group)) + "|"
}

func requireExport(t *testing.T, s *Store, q *Query, hits, ns Sides) {
	t.Helper()
	var gotHits, gotNs int64
	s.Export(q, func(e *Entry) {
		gotHits += e.Hits
		gotNs += e.Ns
		require.NotEmpty(t, e.Stack)
	})
	require.Equal(t, hits.Sum(), gotHits)
	require.Equal(t, ns.Sum(), gotNs)
}

// TestZoom: a zoom keeps the node, its callers and what is below, whichever answer its id is from.
func TestZoom(t *testing.T) {
	s := New(1 << 24)
	fill(s, random(2000))
	v := s.Query(&Query{})
	var target TreeNode
	for _, n := range v.Tree.Nodes[1:] {
		if n.Parent != 0 && n.Total[0] > target.Total[0] {
			target = n
		}
	}
	fill(s, random(2000))
	q := &Query{Zoom: target.ID}
	zoomed := s.Query(q)
	at := zoomed.Tree.Nodes[zoomed.Tree.Zoom]
	require.Equal(t, target.ID, at.ID)
	require.Equal(t, 2*target.Total[0], at.Total[0])
	require.Equal(t, v.Tree.Frames[target.Frame], zoomed.Tree.Frames[at.Frame])
	require.Equal(t, 2*v.Ns[0], zoomed.Ns[0], "the whole is still the whole")
	var ns int64
	s.Export(q, func(e *Entry) { ns += e.Ns })
	require.Equal(t, at.Total[0], ns)
	require.Zero(t, s.Query(&Query{Zoom: 12345}).Tree.Zoom, "what is gone is the root")
	s.Export(&Query{Zoom: 12345}, func(*Entry) { require.Fail(t, "it has no stacks") })
	ns = 0
	s.Export(&Query{Zoom: rootID}, func(e *Entry) { ns += e.Ns })
	require.Equal(t, zoomed.Ns[0], ns)
}

// TestOldestLeave: memory stays within its bound, the oldest samples go, and all are counted.
func TestOldestLeave(t *testing.T) {
	s := New(MinBytes)
	var sent int64
	for round := range int64(200) {
		s.Batch(func(add func(*Sample)) {
			for i := range 500 {
				m := made{labels: map[string]string{"key0": fmt.Sprint(round, "-", i)}, frames: []Frame{{Name: fmt.Sprint("f", i%10)}}, ms: round, ns: 1}
				add(m.sample())
				sent++
			}
		})
		status := s.Status()
		require.LessOrEqual(t, status.Bytes, int64(MinBytes)+MinBytes/4)
		require.Equal(t, sent, status.Received)
		require.Equal(t, sent, s.Query(&Query{}).Hits[0]+status.Evicted)
		require.Equal(t, round, status.ToMs)
	}
	require.NotZero(t, s.Status().Evicted)
	require.Greater(t, s.Status().FromMs, int64(100))
}

// A segment that has left is not kept by a query that began before.
func TestLeavesWhileAsked(t *testing.T) {
	s := New(MinBytes)
	for s.Status().Evicted == 0 && len(s.all) < segments-1 {
		fill(s, random(500))
	}
	q, m := &Query{}, s.takeScratch()
	parts, _ := s.parts()
	scans := s.scanned(parts, q, m)
	first := parts[0].segment
	for s.Status().Evicted == 0 {
		fill(s, random(500))
	}
	require.NotContains(t, s.all, first)
	s.grown(scans, q, m)
	require.Empty(t, s.kept.scans)
	s.Query(q)
	require.NotEmpty(t, s.kept.scans)
}

// TestMemory compares the estimate with what the runtime says.
func TestMemory(t *testing.T) {
	const limit = 8 << 20
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for name, labels := range map[string]int{"many label sets": 1 << 40, "few label sets": 10} {
		before := heap()
		s := New(limit)
		r := rand.New(rand.NewPCG(1, 1))
		for s.Status().Evicted == 0 {
			s.Batch(func(add func(*Sample)) {
				for range 1000 {
					m := made{labels: map[string]string{"key0": fmt.Sprintf("%032x", r.IntN(labels)), "key1": "tenant"}, ms: 1, ns: 1}
					for depth := range 20 {
						m.frames = append(m.frames, Frame{Name: fmt.Sprint("function", depth, r.IntN(3)), Module: "module"})
					}
					add(m.sample())
				}
			})
		}
		used, estimate := heap()-before, s.Status().Bytes
		t.Logf("%s: %d bytes, %d by estimate", name, used, estimate)
		require.Less(t, used, int64(limit)*3/2, name)
		require.Greater(t, used, int64(limit)/3, name)
		runtime.KeepAlive(s)
	}
}

// TestWhileItGrows: those who look see whole batches, and hold up nobody.
func TestWhileItGrows(t *testing.T) {
	s := New(MinBytes)
	all := random(100)
	for i := range all {
		all[i].kind = OnCPU
	}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range 50 {
				fill(s, all)
			}
		})
		group.Go(func() {
			for range 50 {
				v := s.Query(&Query{By: "key1", Buckets: 10})
				require.Zero(t, v.Hits[0]%100, "a part of a batch")
			}
		})
	}
	group.Wait()
}

func TestBounds(t *testing.T) {
	s := New(1 << 26)
	deep := &Sample{Points: []Point{{Hits: 1, Ns: 1}}}
	for i := range MaxFrames + 10 {
		deep.Stack = append(deep.Stack, &Location{Address: uint64(i), Mapping: Mapping{File: fmt.Sprint("m", i)}})
	}
	for i := range MaxLabels + 10 {
		deep.Labels = append(deep.Labels, Label{Key: fmt.Sprint("k", i), Value: "v"})
	}
	s.Batch(func(add func(*Sample)) { add(deep) })
	require.EqualValues(t, 1, s.Status().Cut)
	v := s.Query(&Query{Buckets: 1 << 30})
	require.Len(t, v.Tree.Nodes, MaxFrames+1)
	require.Len(t, v.Facets, MaxFacets)
	require.Equal(t, MaxLabels-MaxFacets, v.MoreKeys)
	require.Len(t, v.Functions, MaxFunctions)
	require.Equal(t, MaxFrames-MaxFunctions, v.MoreFuncs)
}

func TestEmpty(t *testing.T) {
	v := New(0).Query(&Query{Search: "x", Find: "y", Zoom: 3})
	require.Len(t, v.Tree.Nodes, 1)
	require.Zero(t, v.Series.Buckets)
}

func TestFind(t *testing.T) {
	s := New(1 << 24)
	fill(s, random(500))
	v := s.Query(&Query{Find: "ALUE2"})
	require.Len(t, v.Facets, 3)
	for _, f := range v.Facets {
		require.Len(t, f.Values, 1)
		require.Equal(t, "value2", f.Values[0].Text)
	}
	require.Len(t, s.Query(&Query{Find: "key1"}).Facets, 1)
}
