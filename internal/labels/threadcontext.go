package labels

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Layout of a thread context record (OTEP 4947, "Thread Local Reference Data").
const (
	contextTraceID   = 0
	contextSpanID    = 16
	contextValid     = 24
	contextFlags     = 25
	contextAttrsSize = 26
	contextAttrs     = 28

	attributeHeaderBytes = 2 // key index, value length
)

// attribute is the last entry seen for a key index.
type attribute struct {
	value []byte
	rank  int  // position among the entries of the record, from 1; 0: there is none
	cut   bool // value is but a prefix
	lost  bool // nothing is known of value
}

// threadContext decodes the payload of a thread context block: the record's
// header and as much of its attrs-data as was copied. Of one that is malformed it takes over nothing.
func (d *decoder) threadContext(h header, payload []byte) record.Outcome {
	if len(payload) == 0 && h.outcome == record.OutcomeTruncated {
		return record.OutcomeTruncated // there was no room for any of it
	}
	if len(payload) < contextAttrs {
		return record.OutcomeInvalid
	}
	switch payload[contextValid] {
	case 1:
	case 0:
		return record.OutcomeUpdating
	default:
		return record.OutcomeInvalid
	}
	d.link(payload)
	size := int(binary.LittleEndian.Uint16(payload[contextAttrsSize:]))
	attrs := payload[contextAttrs:]
	outcome := h.outcome
	d.collect(attrs, size)
	if cut := d.name(); cut || len(attrs) < size {
		outcome = record.OutcomeTruncated
	}
	return outcome
}

// link takes over the record's ids, unless an earlier block had some.
func (d *decoder) link(record []byte) {
	link := Link{
		TraceID: [16]byte(record[contextTraceID:]),
		SpanID:  [8]byte(record[contextSpanID:]),
	}
	switch {
	case link.IsZero():
	case link.TraceID == [16]byte{} || link.SpanID == [8]byte{}:
		d.out.Counts[AnomalyHalfID]++
	case d.out.Link.IsZero():
		d.out.Link, d.out.Flags, d.linkBlock = link, record[contextFlags], len(d.reads)
	case d.out.Link != link:
		d.out.Counts[AnomalyConflict]++
	}
}

// collect finds the last entry of each key index. attrs is what was copied of
// attrs-data, size its length in the record. An entry that the record itself
// cannot hold ends it; one that only the copy cannot hold is cut.
func (d *decoder) collect(attrs []byte, size int) {
	for pos, rank := 0, 1; pos+attributeHeaderBytes <= size && pos < len(attrs); rank++ {
		a := attribute{rank: rank}
		end := pos + attributeHeaderBytes
		if end > len(attrs) {
			// The copy ends behind the index. There is a value, of whatever
			// length, and it overrides the one seen before.
			a.lost = true
		} else if end += int(attrs[pos+1]); end > size {
			return
		} else {
			a.value = attrs[pos+attributeHeaderBytes : min(end, len(attrs))]
			a.cut = end > len(attrs)
		}
		slot := &d.last[attrs[pos]]
		if slot.rank != 0 {
			d.out.Counts[AnomalyDuplicateKey]++
		}
		*slot = a
		pos = end
	}
}

// name turns the collected attributes into labels and forgets them. When several indexes have
// one name, too, the last entry in the record wins: ranks count backwards. cut tells that of a name
// only a prefix is the key.
func (d *decoder) name() (cut bool) {
	for index := range d.last {
		a := d.last[index]
		if a.rank == 0 {
			continue
		}
		d.last[index] = attribute{}
		key, ok := d.keys.name(byte(index))
		if !ok {
			d.out.Counts[AnomalyUnknownKey]++
			continue
		}
		if a.cut {
			a.value = trimRune(a.value)
		}
		if a.cut || a.lost {
			d.out.Counts[AnomalyTruncatedValue]++
		}
		if key.cut {
			d.out.Counts[AnomalyTruncatedKey]++
			cut = true
		}
		d.entries = append(d.entries, entry{
			key: key.text, value: a.value, cutKey: key.cut, lost: a.lost,
			source: record.ABIThreadContext, block: len(d.reads), rank: -a.rank,
		})
	}
	return cut
}
