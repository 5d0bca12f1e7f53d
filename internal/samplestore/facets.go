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
	ns, covered int64
	values      map[string]int64
	more        int
}

// facets returns the keys that were asked for, then those with the most time, and how many keys
// there are besides.
func facets(scans []*scan, q *Query) ([]Facet, int) {
	counted := make([]*counts, len(scans))
	covered := map[string]int64{}
	for i, s := range scans {
		counted[i] = s.count(strings.ToLower(q.Find))
		for key, ns := range counted[i].byKey {
			if ns > 0 {
				covered[s.part.strings[key]] += ns
			}
		}
	}
	chosen, more := chooseKeys(covered, q.First)
	sums := map[string]*facetSums{}
	for _, key := range chosen {
		sums[key] = &facetSums{covered: covered[key], values: map[string]int64{}}
	}
	for i, s := range scans {
		s.addFacets(sums, counted[i])
	}
	out := make([]Facet, 0, len(chosen))
	for _, key := range chosen {
		out = append(out, newFacet(key, sums[key]))
	}
	return out, more
}

// chooseKeys orders keys: first those that were asked for, then those that cover the most time.
func chooseKeys(covered map[string]int64, first []string) (keys []string, more int) {
	for key := range covered {
		keys = append(keys, key)
	}
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	chosen := largest(keys, MaxFacets, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(covered[b], covered[a]), cmp.Compare(a, b))
	})
	return chosen, len(keys) - len(chosen)
}

func newFacet(key string, sums *facetSums) Facet {
	f := Facet{Key: key, Ns: sums.ns, Covered: sums.covered, More: sums.more}
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
	failedNs []int64 // by filter
	pairNs   []int64 // of the labels that are listed
	byKey    []int64 // likewise, by the number of the key's text
}

// valueNs is the time of a value, by the number of its text.
type valueNs struct {
	value uint32
	ns    int64
}

// count adds up the times of labels: where all filters hold, and for the key of a filter also
// where only this one does not. With a text to find, only labels count that have it.
func (s *scan) count(find string) *counts {
	c := &counts{failedNs: make([]int64, len(s.filters)), byKey: make([]int64, len(s.part.strings))}
	c.pairNs, c.heldNs = slices.Clone(s.held.ns), s.held.all
	for j, failed := range s.failed {
		key, known := ids(s.part.strings, []string{s.filters[j].Key})[s.filters[j].Key]
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
func (s *scan) addFacets(sums map[string]*facetSums, c *counts) {
	for key, sum := range sums {
		sum.ns += c.heldNs
		for j, f := range s.filters {
			if f.Key == key {
				sum.ns += c.failedNs[j]
			}
		}
	}
	const unchosen = -1
	place := make([]int, len(s.part.strings)) // of a key, by the number of its text
	var chosen []*facetSums
	for key, ns := range c.byKey {
		place[key] = unchosen
		if ns > 0 && sums[s.part.strings[key]] != nil {
			place[key] = len(chosen)
			chosen = append(chosen, sums[s.part.strings[key]])
		}
	}
	values := make([][]valueNs, len(chosen))
	for i, ns := range c.pairNs {
		if p := &s.part.pairs[i]; ns > 0 && place[p.key] != unchosen {
			values[place[p.key]] = append(values[place[p.key]], valueNs{p.value, ns})
		}
	}
	for i, there := range values {
		chosen[i].more = max(chosen[i].more, len(there)-mergedValues)
		for _, v := range most(there, mergedValues) {
			chosen[i].values[s.part.strings[v.value]] += v.ns
		}
	}
}

// most returns the values with the most time.
func most(values []valueNs, count int) []valueNs {
	return largest(values, count, func(a, b valueNs) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.value, b.value))
	})
}
