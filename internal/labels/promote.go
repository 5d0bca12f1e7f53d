package labels

import (
	"encoding/binary"
	"encoding/hex"
	"iter"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// IDKey is the key of a label that holds an id as text.
type IDKey struct {
	Key string
	// Decimal ids are unsigned numbers of 64 bits; in a trace id they are the
	// lower half. Others are hex, of the id's full length.
	Decimal bool
}

// Promotion says which custom labels hold the ids of the trace and the span that
// a thread works for. Of several keys the first that a source has counts; a key that two
// sources have with different values is the one's whose label is kept. A source with both ids has them as the set's
// Link instead of as labels; one with only one of them keeps it as a label, since the other one
// of another source may be of another trace. A value that is no id is left out: a writer that
// changes it in place may have been at it.
type Promotion struct {
	TraceID, SpanID []IDKey
}

// promote turns two of the merged labels into the link.
func (d *decoder) promote(p *Promotion) {
	if len(p.TraceID) == 0 || len(p.SpanID) == 0 {
		return
	}
	trace, span, ok := d.pair(p)
	if !ok {
		return
	}
	var link Link
	goodTrace, goodSpan := trace.parse(link.TraceID[:], d.entries), span.parse(link.SpanID[:], d.entries)
	if !goodTrace || !goodSpan {
		d.out.Counts[AnomalyMalformedID]++
		d.leaveOut(func(i int) bool { return i == trace.at && !goodTrace || i == span.at && !goodSpan })
		return
	}
	switch {
	case d.out.Link.IsZero():
		d.out.Link, d.out.Promoted = link, true
	case d.out.Link != link:
		d.out.Counts[AnomalyConflict]++ // the thread context's is the link
		return
	}
	d.leaveOut(func(i int) bool { return i == trace.at || i == span.at })
}

// leaveOut removes the entries at some places.
func (d *decoder) leaveOut(at func(i int) bool) {
	kept := d.entries[:0]
	for i := range d.entries {
		if !at(i) {
			kept = append(kept, d.entries[i])
		}
	}
	clear(d.entries[len(kept):])
	d.entries = kept
}

// found is where a label with an id is.
type found struct {
	at      int // among the entries
	decimal bool
}

// pair finds both ids of one source.
func (d *decoder) pair(p *Promotion) (trace, span found, ok bool) {
	for trace := range d.find(p.TraceID) {
		for span := range d.find(p.SpanID) {
			if trace.at != span.at && d.entries[trace.at].blocks&d.entries[span.at].blocks != 0 {
				return trace, span, true
			}
		}
	}
	return found{}, found{}, false
}

// find yields the labels with one of the keys, those of the first key first.
func (d *decoder) find(keys []IDKey) iter.Seq[found] {
	return func(yield func(found) bool) {
		for _, k := range keys {
			for i := range d.entries {
				e := &d.entries[i]
				if string(e.key) == k.Key && !e.cutKey && e.source != record.ABIThreadContext && !yield(found{i, k.Decimal}) {
					return
				}
			}
		}
	}
}

// parse reports whether the value is an id, that is, complete and not zero.
func (f found) parse(id []byte, entries []entry) bool {
	e := &entries[f.at]
	if e.cutValue {
		return false
	}
	if f.decimal {
		n, err := strconv.ParseUint(string(e.value), 10, 64)
		binary.BigEndian.PutUint64(id[len(id)-8:], n)
		return err == nil && n != 0
	}
	if len(e.value) != hex.EncodedLen(len(id)) {
		return false
	}
	if _, err := hex.Decode(id, e.value); err != nil {
		return false
	}
	for _, b := range id {
		if b != 0 {
			return true
		}
	}
	return false
}
