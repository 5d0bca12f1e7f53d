// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

const (
	maxKeys      = 1000 // that are counted
	maxKeyBytes  = 64   // of one that is named
	maxKeysNamed = 8
)

// keys are what could be meant by a key that no sample has: they are counted until there is no
// such key.
type keys struct {
	missing []string // of those that were asked for
	hits    map[keyOf]int64
}

// keyOf is a key of samples, or of their resources.
type keyOf struct {
	resource bool
	key      string
}

// add counts the keys of a sample. room says whether a text may be kept.
func (k *keys) add(s *sample.Sample, room func(bytes int) bool) {
	k.missing = slices.DeleteFunc(k.missing, func(key string) bool {
		_, ok := s.Lookup(key)
		return ok
	})
	if len(k.missing) == 0 {
		k.hits = nil
		return
	}
	count := func(of keyOf) {
		if _, ok := k.hits[of]; !ok && (len(of.key) > maxKeyBytes || len(k.hits) >= maxKeys || !room(len(of.key))) {
			return
		}
		k.hits[of] = sample.AddNs(k.hits[of], s.Hits)
	}
	for _, a := range s.Attributes {
		count(keyOf{false, strings.TrimPrefix(a.Key, sample.LabelPrefix)})
	}
	for _, a := range s.Process.Attributes {
		count(keyOf{true, a.Key})
	}
}

// notes say of each key that no sample has that it has none, and which keys there are: those of
// samples before those of resources, the most frequent first.
func (k *keys) notes() []string {
	all := make([]keyOf, 0, len(k.hits))
	for of := range k.hits {
		all = append(all, of)
	}
	rank := func(of keyOf) int {
		if of.resource {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b keyOf) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(k.hits[b], k.hits[a]), cmp.Compare(a.key, b.key))
	})
	var named []string
	for _, of := range all {
		if key := terminal.ValidUTF8(of.key); key != "" && len(named) < maxKeysNamed && !slices.Contains(named, key) {
			named = append(named, key)
		}
	}
	var notes []string
	for _, key := range k.missing {
		note := fmt.Sprintf("no sample has the key %s", key)
		if len(named) > 0 {
			note += "; there are " + strings.Join(named, ", ")
		}
		notes = append(notes, note)
	}
	return notes
}
