// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// answer is what the page gets: src/api.ts has its twin. Times are in ns but for those
// named ms. A pair is both sides of a comparison, or all and 0.
type answer struct {
	Version   string            `json:"version"`
	Source    string            `json:"source"`
	Live      bool              `json:"live"`
	By        string            `json:"by"`
	Notes     []string          `json:"notes"`
	Bytes     int64             `json:"bytes"`
	MaxBytes  int64             `json:"maxBytes"`
	Received  int64             `json:"received"`
	Evicted   int64             `json:"evicted"`
	Cut       int64             `json:"cut"`
	FromMs    int64             `json:"fromMs"`
	ToMs      int64             `json:"toMs"`
	OffCPU    bool              `json:"offCpu"`
	Hits      samplestore.Sides `json:"hits"`
	Ns        samplestore.Sides `json:"ns"`
	Found     samplestore.Sides `json:"found"`
	Series    series            `json:"series"`
	Facets    []facet           `json:"facets"`
	MoreKeys  int               `json:"moreKeys"`
	Modules   facet             `json:"modules"`
	Types     facet             `json:"types"`
	Tree      tree              `json:"tree"`
	Functions []function        `json:"functions"`
	MoreFuncs int               `json:"moreFunctions"`
	TookMs    float64           `json:"tookMs"`
}

type series struct {
	FromMs  int64         `json:"fromMs"`
	StepMs  int64         `json:"stepMs"`
	Buckets int           `json:"buckets"`
	Values  []seriesValue `json:"values"`
}

// seriesValue has the value of a label; none: without, others: all that are not told apart.
type seriesValue struct {
	Text   string  `json:"text"`
	None   bool    `json:"none,omitempty"`
	Others bool    `json:"others,omitempty"`
	Ns     []int64 `json:"ns"`
}

// facet is a key: ns of all samples that count, covered of those that have it.
type facet struct {
	Key     string       `json:"key"`
	Ns      int64        `json:"ns"`
	Covered int64        `json:"covered"`
	Values  []facetValue `json:"values"`
	More    int          `json:"more"`
}

type facetValue struct {
	Text string `json:"text"`
	Ns   int64  `json:"ns"`
}

// tree has its nodes column by column, parents before children.
type tree struct {
	Frames []frame             `json:"frames"`
	ID     []string            `json:"id"`
	Parent []int               `json:"parent"`
	Frame  []int               `json:"frame"`
	Self   []samplestore.Sides `json:"self"`
	Total  []samplestore.Sides `json:"total"`
	Zoom   int                 `json:"zoom"`
	Hidden int                 `json:"hidden"`
}

// frame is the name, the module and the type; of the first level of a grouped tree also "value",
// "none" or "others", and the name is the value.
type frame []string

type function struct {
	Frame frame             `json:"frame"`
	Self  samplestore.Sides `json:"self"`
	Total samplestore.Sides `json:"total"`
}

func newAnswer(v *samplestore.View) *answer {
	s := v.Status
	a := &answer{
		Version: strconv.FormatUint(s.Version, 10), Bytes: s.Bytes, MaxBytes: s.Max,
		Received: s.Received, Evicted: s.Evicted, Cut: s.Cut, FromMs: s.FromMs, ToMs: s.ToMs, OffCPU: s.Kinds[samplestore.OffCPU],
		Hits: v.Hits, Ns: v.Ns, Found: v.Found,
		Series: series{FromMs: v.Series.FromMs, StepMs: v.Series.StepMs, Buckets: v.Series.Buckets, Values: []seriesValue{}},
		Facets: []facet{}, MoreKeys: v.MoreKeys, Modules: newFacet(v.Modules), Types: newFacet(v.Types),
		Tree: newTree(&v.Tree), Functions: make([]function, len(v.Functions)), MoreFuncs: v.MoreFuncs,
	}
	for _, value := range v.Series.Values {
		a.Series.Values = append(a.Series.Values, seriesValue{
			Text: value.Value.Text, None: !value.Value.Present && !value.Others, Others: value.Others, Ns: value.Ns,
		})
	}
	for _, f := range v.Facets {
		a.Facets = append(a.Facets, newFacet(f))
	}
	for i, f := range v.Functions {
		a.Functions[i] = function{Frame: newFrame(f.Frame), Self: f.Self, Total: f.Total}
	}
	return a
}

func newFrame(f samplestore.Frame) frame {
	made := frame{f.Name, f.Module, f.Type}
	if f.Group != samplestore.NoGroup {
		made = append(made, map[samplestore.Group]string{
			samplestore.GroupValue: "value", samplestore.GroupNone: "none", samplestore.GroupOthers: "others",
		}[f.Group])
	}
	return made
}

func newFacet(f samplestore.Facet) facet {
	out := facet{Key: f.Key, Ns: f.Ns, Covered: f.Covered, More: f.More, Values: make([]facetValue, len(f.Values))}
	for i, v := range f.Values {
		out.Values[i] = facetValue{Text: v.Text, Ns: v.Ns}
	}
	return out
}

func newTree(t *samplestore.Tree) tree {
	out := tree{Frames: make([]frame, len(t.Frames)), Zoom: t.Zoom, Hidden: t.Hidden}
	for i, f := range t.Frames {
		out.Frames[i] = newFrame(f)
	}
	for _, n := range t.Nodes {
		out.ID = append(out.ID, strconv.FormatUint(uint64(n.ID), 16))
		out.Parent = append(out.Parent, n.Parent)
		out.Frame = append(out.Frame, n.Frame)
		out.Self = append(out.Self, n.Self)
		out.Total = append(out.Total, n.Total)
	}
	return out
}
