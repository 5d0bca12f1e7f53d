package labels

import (
	"bytes"
	"cmp"
	"slices"
)

// precedence orders labels by key and, within a key, the winner first.
func precedence(a, b entry) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	if a.cutKey != b.cutKey {
		// What was cut off may be what tells the keys apart.
		if a.cutKey {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(rank(b.source), rank(a.source)),
		cmp.Compare(a.block, b.block),
		cmp.Compare(a.rank, b.rank),
	)
}

// merge leaves one entry a key, sorted by key, and counts what lost. What is said behind a source that could not be
// read is cut: any of its labels, and its link, may be the other's value of before.
func (d *decoder) merge() {
	slices.SortFunc(d.entries, precedence)
	kept := d.entries[:0] // never overtakes the reading position
	for i := 0; i < len(d.entries); {
		winner, previous := d.entries[i], d.entries[i]
		winner.blocks = 1 << winner.block
		for i++; i < len(d.entries) && bytes.Equal(d.entries[i].key, winner.key); i++ {
			e := d.entries[i]
			switch {
			case e.cutKey:
				// Already counted as cut; whether it is the same key is unknown.
			case e.block == previous.block:
				d.out.Counts[AnomalyDuplicateKey]++
			case !bytes.Equal(e.value, winner.value):
				d.out.Counts[AnomalyConflict]++
			case !e.cutValue:
				winner.blocks |= 1 << e.block
			}
			previous = e
		}
		if !winner.lost {
			kept = append(kept, winner)
		}
	}
	clear(d.entries[len(kept):])
	d.entries = kept
	for block, r := range d.reads {
		if unreadable(r.Outcome) {
			behind := func(e entry) bool { return cmp.Or(rank(r.ABI)-rank(e.source), e.block-block) > 0 }
			d.cut = d.cut || r.ABI.ThreadContext() && d.linkBlock > block || slices.ContainsFunc(kept, behind)
		}
	}
}

// newSet makes a set of the merged labels, which it shares with no other.
func (d *decoder) newSet() *Set {
	s := &Set{labels: make([]Label, len(d.entries)), truncated: d.cut}
	for i, e := range d.entries {
		s.labels[i] = Label{Key: string(e.key), Value: string(e.value), Source: e.source}
	}
	return s
}

// appendIdentity appends an encoding of the admitted labels that only equal sets of one
// user have: one byte for the truncation mark, then for each label its source and whether its value is escaped, the
// key's id and the length of the value as uvarints, and the value.
func (d *decoder) appendIdentity(b []byte) []byte {
	cut := byte(0)
	if d.cut {
		cut = 1
	}
	b = append(b, cut)
	for i := range d.entries {
		e := &d.entries[i]
		b = appendLabelHead(b, e)
		b = append(b, e.value...)
	}
	return b
}

// shareSet makes the set of the admitted labels. Their keys are the registry's, their
// values are parts of identity.
func (d *decoder) shareSet(identity string) *Set {
	s := &Set{labels: make([]Label, 0, len(d.entries)), truncated: d.cut}
	var head [labelHeadBytes]byte
	pos := setHeadBytes
	for i := range d.entries {
		e := &d.entries[i]
		pos += len(appendLabelHead(head[:0], e))
		s.labels = append(s.labels, Label{Key: e.name.name, Value: identity[pos : pos+len(e.value)], Source: e.source})
		if e.escaped {
			s.escaped = append(s.escaped, e.name.name)
		}
		pos += len(e.value)
	}
	return s
}
