//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// labels compares the labels of a thread with what testdata/tls/publish.c has
// published there.
func (v *verdict) labels(th *thread, got *labels.Decoded) error {
	if len(got.Reads) != len(v.sources) {
		return fmt.Errorf("%d sources were read, not %d", len(got.Reads), len(v.sources))
	}
	want, context := v.published(th)
	var found []string
	for l := range got.Set.All() {
		found = append(found, l.Key+"="+l.Value)
	}
	slices.Sort(found)
	if !slices.Equal(found, want) || got.Set.Truncated() {
		return fmt.Errorf("labels %v, not %v (%v)", found, want, got.Reads)
	}
	link := labels.Link{}
	if context {
		link = linkOf(v.cell.Dir(), th.name)
	}
	if got.Link != link {
		return fmt.Errorf("link %x, not %x", got.Link, link)
	}
	return nil
}

// published returns the labels of a thread, and whether one of its sources is a
// thread context.
func (v *verdict) published(th *thread) (set []string, context bool) {
	if th.name == untouched {
		return nil, false
	}
	set = []string{"cell=" + v.cell.Dir(), "thread=" + th.name}
	seen := map[uint64]bool{}
	for _, definer := range slices.Sorted(maps.Keys(th.variables)) { // exe comes before lib
		if address := th.variables[definer]; !seen[address] {
			seen[address] = true
			set = append(set, "in."+definer+"=1")
			context = context || v.program.definers[definer].abi == abiContext
		}
	}
	slices.Sort(set)
	return set, context
}

// abiContext is ABI_CTX of testdata/tls/definer.h.
const abiContext = 2

// linkOf is what a thread context of a thread of a cell has as its ids.
func linkOf(name, thread string) (l labels.Link) {
	low := hash(0xcbf29ce484222325, name)
	binary.LittleEndian.PutUint64(l.TraceID[:], low)
	binary.LittleEndian.PutUint64(l.TraceID[8:], hash(low, name))
	copy(l.SpanID[:], thread)
	return l
}

// hash is FNV-1a of 64 bits.
func hash(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return h
}
