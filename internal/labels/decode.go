package labels

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// blockAlign is what payloads of label blocks are padded to.
const blockAlign = 8

var emptyDecoded = &Decoded{Set: emptySet}

// Decode returns the meaning of a label section by itself: there are no rules and no
// budgets, and nothing is remembered, as by a [Channel]. section and keys are as of
// [Channel.Decode].
func Decode(keys *KeyMap, section []byte) *Decoded {
	if len(section) == 0 {
		return emptyDecoded
	}
	var d decoder
	d.decode(keys, section)
	d.merge()
	result := d.out
	result.Set, result.Reads = d.newSet(), d.reads
	return &result
}

// decoder holds the scratch memory of decoding; nothing in it outlives a call.
type decoder struct {
	keys     *KeyMap
	entries  []entry
	out      Decoded
	reads    []Read
	cut      bool // anything at all was cut
	identity []byte
	last     [maxKeyNames]attribute
	// linkBlock is the label block that out.Link came from; 0 if there is no link, or none before it.
	linkBlock int
}

// header is the part of struct label_block that decoding depends on.
type header struct {
	abi     record.ABI
	outcome record.Outcome
	skipped uint32
}

// entry is a label before duplicates and conflicts are resolved.
type entry struct {
	key, value []byte
	source     record.ABI
	cutKey     bool   // key is but a prefix
	cutValue   bool   // value is but a prefix
	lost       bool   // there is a value, but nothing is known of it
	block      int    // the label block it came from
	blocks     uint64 // with key and value, a bit each; of a merged one
	rank       int    // within the block; the lower one wins

	// Of the Registry.
	renamed bool // by a rule
	escaped bool // value is by Escape, which has changed it
	limit   int  // of different values of the key; 0: none
	name    *key
}

// decode splits a section into its blocks and decodes each. It never reads
// outside of section, whatever the lengths in it say.
func (d *decoder) decode(keys *KeyMap, section []byte) {
	d.keys, d.entries, d.out, d.reads, d.cut = keys, d.entries[:0], Decoded{}, d.reads[:0], false
	d.linkBlock = 0
	for len(section) > 0 {
		if len(section) < record.LabelBlockBytes {
			d.reads = append(d.reads, Read{Outcome: record.OutcomeInvalid})
			return
		}
		block := header{
			abi:     record.ABI(section[0]),
			outcome: record.Outcome(section[1]),
			skipped: binary.LittleEndian.Uint32(section[8:]),
		}
		size := int(binary.LittleEndian.Uint16(section[2:]))
		section = section[record.LabelBlockBytes:]
		if size > len(section) {
			// Where the next block would begin is unknown, too.
			d.reads = append(d.reads, Read{ABI: block.abi, Outcome: record.OutcomeInvalid})
			return
		}
		outcome := d.block(block, section[:size])
		d.reads = append(d.reads, Read{ABI: block.abi, Outcome: outcome})
		section = section[min(align(size), len(section)):]
	}
}

// block decodes one payload and returns the final outcome. Of a block that
// turns out to be malformed nothing is kept.
func (d *decoder) block(h header, payload []byte) record.Outcome {
	switch {
	case h.abi == record.ABINone || h.abi >= record.NumABIs || h.outcome >= record.NumOutcomes:
		return record.OutcomeInvalid
	case h.outcome == record.OutcomeNone:
		d.countNulls(h) // possibly all that there is
		return record.OutcomeNone
	case !trusted(h.outcome):
		return h.outcome
	}
	entries, counts := len(d.entries), d.out.Counts
	var outcome record.Outcome
	if h.abi.ThreadContext() {
		outcome = d.threadContext(h, payload)
	} else {
		outcome = d.customLabels(h, payload)
	}
	switch outcome {
	case record.OutcomePresent:
	case record.OutcomeTruncated:
		d.cut = true
		d.out.Counts[AnomalyTruncatedSet]++
	default:
		clear(d.entries[entries:])
		d.entries = d.entries[:entries]
		d.out.Counts = counts
	}
	return outcome
}

// countNulls counts the labels that were left out for want of a value.
func (d *decoder) countNulls(h header) {
	if h.abi == record.ABIV0 || h.abi == record.ABIV1 {
		d.out.Counts[AnomalyNullValue] = saturatingAdd(d.out.Counts[AnomalyNullValue], h.skipped)
	}
}

func align(n int) int { return (n + blockAlign - 1) &^ (blockAlign - 1) }

func saturatingAdd(a, b uint32) uint32 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint32(0)
}
