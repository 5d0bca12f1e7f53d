package samplestore

import "strings"

// Bounds of an answer.
const (
	MaxNodes     = 4000 // of a tree
	MaxFunctions = 300
	MaxFacets    = 48 // label keys
	MaxValues    = 20 // of a label key
	MaxBuckets   = 400
	MaxGroups    = 40 // values that a grouped tree tells apart
	maxClasses   = 8  // values that the series tell apart
)

// MaxFilters bounds Query.Filters: each has a bit of a word, as the sides of a comparison have.
const MaxFilters = 32

// Value is the value of a label, or its absence.
type Value struct {
	Text    string
	Present bool
}

// Filter lets samples pass whose label has one of the values.
type Filter struct {
	Key    string
	Values []Value
}

// Property is something of a frame that samples can be selected by.
type Property uint8

const (
	// ByFunction is the name of a function.
	ByFunction Property = iota
	// ByModule is the file that a function is in.
	ByModule
	// ByType is the type of a frame.
	ByType

	properties
)

// FrameFilter lets samples pass that have a frame with this property in their stack. Of several of
// one property, one is enough.
type FrameFilter struct {
	Property Property
	Text     string
}

func (f FrameFilter) matches(frame Frame) bool {
	switch f.Property {
	case ByFunction:
		return frame.Name == f.Text
	case ByModule:
		return frame.Module == f.Text
	default:
		return frame.Type == f.Text
	}
}

// Range is the time from FromMs up to ToMs, since 1970.
type Range struct{ FromMs, ToMs int64 }

func (r Range) has(ms int64) bool { return ms >= r.FromMs && ms < r.ToMs }

// Compare asks for two sides: the samples with one value of a label and those with another, or,
// with Times, those of one range of time and those of another. What is in both is of the first.
type Compare struct {
	Key   string
	A, B  Value
	Times *[2]Range // in place of the range of the query
}

// Query selects samples and says what is to be told about them.
type Query struct {
	Kind         Kind
	FromMs, ToMs int64    // since 1970, FromMs up to ToMs; ToMs 0: no bounds
	Filters      []Filter // at most MaxFilters
	Frames       []FrameFilter
	Compare      *Compare

	By      string   // label key that the series tell apart
	First   []string // label keys that facets begin with
	Group   string   // label key whose values are the first level of the tree; "": none
	Buckets int      // of the series
	Search  string   // part of the names of functions, in any case
	Find    string   // part of label keys or values: facets list only these
	Zoom    NodeID   // 0: none
}

// Sides is time in ns: of all in [0], or of the two sides of a comparison.
type Sides [2]int64

// Sum is both.
func (s Sides) Sum() int64 { return AddNs(s[0], s[1]) }

func (s *Sides) add(other Sides) {
	s[0] = AddNs(s[0], other[0])
	s[1] = AddNs(s[1], other[1])
}

func (s *Sides) subtract(other Sides) {
	s[0] -= other[0]
	s[1] -= other[1]
}

// View is the answer to a query, of one instant.
type View struct {
	Status    Status
	Hits      Sides
	Ns        Sides
	Series    Series
	Facets    []Facet
	MoreKeys  int // label keys that are not in Facets
	Modules   Facet
	Types     Facet
	Tree      Tree
	Functions []FunctionSum
	MoreFuncs int   // functions that are not in Functions
	Found     Sides // time with a function that Search matches
}

// Query answers a query.
func (s *Store) Query(q *Query) View {
	parts, status := s.parts()
	v := View{Status: status}
	m := s.takeScratch()
	defer s.scratches.Put(m)
	scans := s.scanned(parts, q, m)
	for _, scan := range scans {
		v.Hits.add(scan.hits)
		v.Ns.add(scan.ns)
	}
	v.Series = series(scans, q, status, m)
	v.Facets, v.MoreKeys = facets(scans, q)
	tree := s.grown(scans, q, m)
	v.Tree = tree.cut(q.Zoom)
	tree.functions(&v, strings.ToLower(q.Search))
	return v
}

// scanned are the parts with the sums by label set.
func (s *Store) scanned(parts []*part, q *Query, m *scratch) []*scan {
	known := s.kept.get(q.selection())
	scans := make([]*scan, len(parts))
	for i, p := range parts {
		if scans[i] = known[p.segment]; scans[i] == nil || !p.full {
			scans[i] = newScan(p, q, m)
		}
	}
	return scans
}
