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
	Key    string
	Values []FacetValue
	More   int   // values that are not listed; at least so many
	Ns     int64 // of all samples that count, also those without the label
}

// FacetValue is a value with the time of samples that have it.
type FacetValue struct {
	Text string
	Ns   int64
}

// facetSums adds up what parts have of one key.
type facetSums struct {
	ns     int64 // of all samples, with the label or without
	values map[string]int64
	more   int
}

func facets(scans []*scan, q *Query) ([]Facet, int) {
	chosen, more := chooseKeys(scans, q)
	sums := map[string]*facetSums{}
	for _, key := range chosen {
		sums[key] = &facetSums{values: map[string]int64{}}
	}
	for _, s := range scans {
		s.addFacets(sums)
	}
	out := make([]Facet, 0, len(chosen))
	for _, key := range chosen {
		f := newFacet(key, sums[key])
		if len(f.Values) > 0 {
			out = append(out, f)
		}
	}
	return out, more
}

func newFacet(key string, sums *facetSums) Facet {
	f := Facet{Key: key, Ns: sums.ns, More: sums.more}
	for text, ns := range sums.values {
		f.Values = append(f.Values, FacetValue{Text: text, Ns: ns})
	}
	slices.SortFunc(f.Values, func(a, b FacetValue) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.Text, b.Text))
	})
	if len(f.Values) > MaxValues {
		f.More += len(f.Values) - MaxValues
		f.Values = f.Values[:MaxValues]
	}
	return f
}

// counts says whether the time of a set counts for a key.
func (s *scan) counts(v verdict, key string) bool {
	return v.failed == noFilter || v.failed >= 0 && s.q.Filters[v.failed].Key == key
}

// chooseKeys returns the keys with the most time, sorted by name, and how many others there are.
func chooseKeys(scans []*scan, q *Query) ([]string, int) {
	sums := map[string]int64{}
	find := strings.ToLower(q.Find)
	for _, s := range scans {
		byKey := map[uint32]int64{}
		matches := s.matches(find)
		for i, ns := range s.setNs {
			if ns == 0 {
				continue
			}
			for _, p := range s.part.sets[i].pairs {
				if matches.has(p.key) || matches.has(p.value) {
					byKey[p.key] += ns
				}
			}
		}
		for key, ns := range byKey {
			sums[s.part.strings[key]] += ns
		}
	}
	keys := make([]string, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b))
	})
	more := max(len(keys)-MaxFacets, 0)
	keys = keys[:len(keys)-more]
	slices.Sort(keys)
	return keys, more
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

// addFacets adds the times of a part, key by key in an array over all its strings: sets
// can be many, as many as there are traces.
func (s *scan) addFacets(sums map[string]*facetSums) {
	wanted := make([]string, 0, len(sums))
	for key := range sums {
		wanted = append(wanted, key)
	}
	for key, sum := range sums {
		sum.ns += s.heldNs
		for i, f := range s.q.Filters {
			if f.Key == key {
				sum.ns += s.failedNs[i]
			}
		}
	}
	matches := s.matches(strings.ToLower(s.q.Find))
	ns := map[uint32][]int64{} // by key, then by value
	for _, id := range ids(s.part.strings, wanted) {
		ns[id] = nil
	}
	for i, setNs := range s.setNs {
		if setNs == 0 {
			continue
		}
		for _, p := range s.part.sets[i].pairs {
			values, chosen := ns[p.key]
			if !chosen || !matches.has(p.key) && !matches.has(p.value) || !s.counts(s.verdicts[i], s.part.strings[p.key]) {
				continue
			}
			if values == nil {
				values = make([]int64, len(s.part.strings))
				ns[p.key] = values
			}
			values[p.value] += setNs
		}
	}
	for key, values := range ns {
		s.addFacet(sums[s.part.strings[key]], values)
	}
}

func (s *scan) addFacet(sum *facetSums, values []int64) {
	var there []uint32
	for id, ns := range values {
		if ns > 0 {
			there = append(there, uint32(id))
		}
	}
	if len(there) > mergedValues {
		slices.SortFunc(there, func(a, b uint32) int { return cmp.Compare(values[b], values[a]) })
		sum.more = max(sum.more, len(there)-mergedValues)
		there = there[:mergedValues]
	}
	for _, id := range there {
		sum.values[s.part.strings[id]] += values[id]
	}
}
