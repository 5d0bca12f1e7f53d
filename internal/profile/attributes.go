package profile

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// setAttributes is a label set in terms of the dictionary.
type setAttributes struct {
	indexes []int32 // ascending
	// Of the labels in the set:
	escaped, renamed, dropped uint64
}

// setAttributes returns the attributes of a label set, by the rules in the
// package documentation.
func (b *build) setAttributes(s *labels.Set) setAttributes {
	if s == nil {
		return setAttributes{}
	}
	if a, ok := b.sets[s]; ok {
		return a
	}
	var a setAttributes
	clear(b.names)
	if s.Overflow() {
		a.indexes = append(a.indexes, b.tables.attribute(trueAttr(attrOverflow)))
	}
	if s.Truncated() {
		a.indexes = append(a.indexes, b.tables.attribute(trueAttr(attrTruncated)))
	}
	// Two passes, so that on one name the thread context wins here, too.
	for l := range s.All() {
		if l.Source == record.ABIThreadContext {
			b.addLabel(&a, l, "")
		}
	}
	for l := range s.All() {
		if l.Source != record.ABIThreadContext {
			b.addLabel(&a, l, b.opts.LabelPrefix)
		}
	}
	slices.Sort(a.indexes)
	b.sets[s] = a
	return a
}

func (b *build) addLabel(a *setAttributes, l labels.Label, prefix string) {
	key := cleanKey(l.Key)
	wanted := prefix + key
	name := b.nameOf(wanted)
	switch {
	case wanted == "":
		wanted, name = attrEmptyKey, attrEmptyKey
	case b.taken(name):
		wanted = fallbackPrefix + key
		name = b.nameOf(wanted)
		a.renamed++
	}
	same := b.same(name)
	if b.names[same] {
		a.dropped++
		return
	}
	b.names[same] = true
	if key != l.Key || name != wanted {
		a.escaped++
	}
	attr := textAttr(name, l.Value)
	if !utf8.ValidString(l.Value) {
		attr = bytesAttr(name, l.Value)
	}
	a.indexes = append(a.indexes, b.tables.attribute(attr))
}

// appendAttributes appends the attributes of an entry. Ours come first and in a
// fixed order, the set's are sorted: equal sets of attributes are equal lists.
func (b *build) appendAttributes(to []int32, k *key, link linkRef, set setAttributes) []int32 {
	// A thread that the reader's PID namespace does not show has no number.
	if b.opts.ThreadID && k.tid != 0 && k.overflow != stackOverflow {
		to = append(to, b.tables.attribute(intAttr(attrThreadID, int64(k.tid))))
	}
	if b.opts.ThreadName && k.overflow != stackOverflow {
		if comm, _, _ := bytes.Cut(k.comm[:], []byte{0}); len(comm) > 0 {
			to = append(to, b.tables.attribute(textAttr(attrThreadName, clean(string(comm)))))
		}
	}
	if b.opts.CPUAttribute && k.overflow != stackOverflow {
		to = append(to, b.tables.attribute(intAttr(attrCPU, int64(k.cpu))))
	}
	if link.trace != 0 {
		to = append(to, link.trace, link.span)
		if k.sampled != SampledUnknown {
			to = append(to, b.tables.attribute(boolAttr(attrTraceSampled, k.sampled == SampledYes)))
		}
	}
	if k.state != record.ThreadRunning {
		to = append(to, b.tables.attribute(textAttr(attrThreadState, k.state.String())))
	}
	if k.cut {
		to = append(to, b.tables.attribute(trueAttr(attrStackTruncated)))
	}
	return append(to, set.indexes...)
}
