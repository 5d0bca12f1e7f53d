package samplestore

import (
	"cmp"
	"slices"
	"strings"
)

// mergedValues bounds how many values of one key are taken from a part that has more.
const mergedValues = 2000

// Facet is a label key with the values that have the most time. Time counts where all
// filters hold but those on the key itself, so that other values of it can be chosen.
type Facet struct {
	Key     string
	Values  []FacetValue
	More    int   // values that are not listed; at least so many
	Ns      int64 // of all samples that count, also those without the label
	Covered int64 // of those with the label
}

// FacetValue is a value with the time of samples that have it.
type FacetValue struct {
	Text string
	Ns   int64
}

// facetSums adds up what parts have of one key.
type facetSums struct {
	key         string
	ns, covered int64
	place       int              // among the keys that are listed
	values      map[string]int64 // nil: it is not listed
	more        int
}

// facets returns the keys that were asked for, then those with the most time, and how many keys
// there are besides.
func facets(scans []*scan, q *Query) ([]Facet, int) {
	counted := make([]*counts, len(scans))
	sums := map[string]*facetSums{}
	for i, s := range scans {
		counted[i] = s.count(strings.ToLower(q.Find))
		counted[i].addKeys(s.part.strings, sums)
	}
	keys := make([]*facetSums, 0, len(sums))
	for _, sum := range sums {
		keys = append(keys, sum)
	}
	chosen := chooseKeys(keys, q.First)
	for i, sum := range chosen {
		sum.place, sum.values = i, map[string]int64{}
	}
	for i, s := range scans {
		s.addFacets(chosen, counted[i])
	}
	out := make([]Facet, 0, len(chosen))
	for _, sum := range chosen {
		out = append(out, newFacet(sum))
	}
	return out, len(keys) - len(chosen)
}

// chooseKeys returns keys in order: first those that were asked for, then those that cover the
// most time.
func chooseKeys(keys []*facetSums, first []string) []*facetSums {
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	return largest(keys, MaxFacets, func(a, b *facetSums) int {
		return cmp.Or(cmp.Compare(rank(a.key), rank(b.key)), cmp.Compare(b.covered, a.covered), cmp.Compare(a.key, b.key))
	})
}

func newFacet(sums *facetSums) Facet {
	f := Facet{Key: sums.key, Ns: sums.ns, Covered: sums.covered, More: sums.more}
	for text, ns := range sums.values {
		f.Values = append(f.Values, FacetValue{Text: text, Ns: ns})
	}
	all := f.Values
	f.Values = largest(all, MaxValues, func(a, b FacetValue) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Text, b.Text))
	})
	f.More += len(all) - len(f.Values)
	return f
}

// counts are the times of labels in a part.
type counts struct {
	heldNs   int64
	failedNs []int64      // by filter
	pairNs   []int64      // of the labels that are listed
	byKey    []int64      // likewise, by the number of the key's text
	sums     []*facetSums // by the number of a key's text; nil: no time
}

// addKeys adds the times of keys to those of all parts.
func (c *counts) addKeys(texts []string, sums map[string]*facetSums) {
	c.sums = make([]*facetSums, len(c.byKey))
	for key, ns := range c.byKey {
		if ns <= 0 {
			continue
		}
		text := texts[key]
		sum := sums[text]
		if sum == nil {
			sum = &facetSums{key: text}
			sums[text] = sum
		}
		sum.covered = AddNs(sum.covered, ns)
		c.sums[key] = sum
	}
}

// valueNs is the time of a value, by the number of its text.
type valueNs struct {
	value uint32
	ns    int64
}

// count adds up the times of labels: where all filters hold, and for the key of a filter also
// where only this one does not. With a text to find, only labels count that have it.
func (s *scan) count(find string) *counts {
	c := &counts{failedNs: make([]int64, len(s.q.Filters)), byKey: make([]int64, len(s.part.strings))}
	c.pairNs, c.heldNs = slices.Clone(s.held.ns), s.held.all
	for j, failed := range s.failed {
		key, known := ids(s.part.strings, []string{s.q.Filters[j].Key})[s.q.Filters[j].Key]
		c.failedNs[j] = failed.all
		for i, ns := range failed.ns {
			if known && s.part.pairs[i].key == key {
				c.pairNs[i] += ns
			}
		}
	}
	matches := s.matches(find)
	for i, ns := range c.pairNs {
		if p := &s.part.pairs[i]; ns != 0 && (matches.has(p.key) || matches.has(p.value)) {
			c.byKey[p.key] += ns
		} else {
			c.pairNs[i] = 0
		}
	}
	return c
}

// matches says which strings of a part have a text in them.
func (s *scan) matches(find string) marks {
	if find == "" {
		return nil
	}
	out := make(marks, len(s.part.strings))
	for i, text := range s.part.strings {
		out[i] = strings.Contains(strings.ToLower(text), find)
	}
	return out
}

// addFacets adds the times of a part. A value can stand twice, as a text and as a number.
func (s *scan) addFacets(chosen []*facetSums, c *counts) {
	for _, sum := range chosen {
		sum.ns = AddNs(sum.ns, c.heldNs)
		for j, f := range s.q.Filters {
			if f.Key == sum.key {
				sum.ns = AddNs(sum.ns, c.failedNs[j])
			}
		}
	}
	each := func(visit func(at int, v valueNs)) {
		for i, ns := range c.pairNs {
			if ns > 0 {
				p := &s.part.pairs[i]
				if sum := c.sums[p.key]; sum != nil && sum.values != nil {
					visit(sum.place, valueNs{p.value, ns})
				}
			}
		}
	}
	there := make([]int, len(chosen))
	each(func(at int, _ valueNs) { there[at]++ })
	values := make([][]valueNs, len(chosen))
	for i, n := range there {
		values[i] = make([]valueNs, 0, n)
	}
	each(func(at int, v valueNs) { values[at] = append(values[at], v) })
	for i, there := range values {
		chosen[i].more = max(chosen[i].more, len(there)-mergedValues)
		for _, v := range most(there, mergedValues) {
			text := s.part.strings[v.value]
			chosen[i].values[text] = AddNs(chosen[i].values[text], v.ns)
		}
	}
}

// most returns the values with the most time.
func most(values []valueNs, count int) []valueNs {
	return largest(values, count, func(a, b valueNs) int {
		if a.ns != b.ns {
			return cmp.Compare(b.ns, a.ns)
		}
		return cmp.Compare(a.value, b.value)
	})
}
