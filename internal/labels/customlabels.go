package labels

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// customLabels decodes the payload of a v0 or v1 block: struct raw_label with
// its key and value bytes, one after the other without padding.
func (d *decoder) customLabels(h header, payload []byte) record.Outcome {
	outcome := h.outcome
	d.countNulls(h)
	for rank := 0; len(payload) > 0; rank++ {
		if len(payload) < record.RawLabelBytes {
			return record.OutcomeInvalid
		}
		keyLen := binary.LittleEndian.Uint32(payload)
		valueLen := binary.LittleEndian.Uint32(payload[4:])
		keyBytes := int(binary.LittleEndian.Uint16(payload[8:]))
		valueBytes := int(binary.LittleEndian.Uint16(payload[10:]))
		payload = payload[record.RawLabelBytes:]
		if uint32(keyBytes) > keyLen || uint32(valueBytes) > valueLen || keyBytes+valueBytes > len(payload) {
			return record.OutcomeInvalid
		}
		e := entry{
			key: payload[:keyBytes], value: payload[keyBytes : keyBytes+valueBytes],
			source: h.abi, block: len(d.reads), rank: rank,
		}
		payload = payload[keyBytes+valueBytes:]
		if uint32(keyBytes) < keyLen {
			e.key, e.cutKey = trimRune(e.key), true
			d.out.Counts[AnomalyTruncatedKey]++
			outcome = record.OutcomeTruncated
		}
		if uint32(valueBytes) < valueLen {
			e.value, e.cutValue = trimRune(e.value), true
			d.out.Counts[AnomalyTruncatedValue]++
			outcome = record.OutcomeTruncated
		}
		d.entries = append(d.entries, e)
	}
	return outcome
}

// trimRune returns the prefix b of a longer string without the incomplete UTF-8
// sequence that the cut may have left at its end. Bytes that are no UTF-8
// anyway are left alone.
func trimRune(b []byte) []byte {
	for tail := 1; tail < utf8.UTFMax && tail <= len(b); tail++ {
		start := len(b) - tail
		if !utf8.RuneStart(b[start]) {
			continue
		}
		if !utf8.FullRune(b[start:]) {
			return b[:start]
		}
		break
	}
	return b
}
