package labelread

import (
	"encoding/binary"
	"math"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// blockAlign is what a label block is padded to.
const blockAlign = 8

// block is a struct label_block in the making.
type block struct {
	count, skipped uint32
	payload        []byte
}

// room reports whether n more bytes of labels fit a label section.
func (b *block) room(n int) bool {
	return record.LabelBlockBytes+len(b.payload)+n <= record.MaxSlotEnd
}

// finish returns the bytes of the block. Only an outcome that comes with labels
// keeps the payload.
func (b *block) finish(abi record.ABI, outcome record.Outcome) []byte {
	payload := b.payload
	if outcome != record.OutcomePresent && outcome != record.OutcomeTruncated {
		payload = nil
	}
	out := make([]byte, 0, record.LabelBlockBytes+len(payload)+blockAlign)
	out = append(out, byte(abi), byte(outcome))
	out = binary.LittleEndian.AppendUint16(out, uint16(len(payload))) // fits: maxSectionBytes
	out = binary.LittleEndian.AppendUint32(out, b.count)
	out = binary.LittleEndian.AppendUint32(out, b.skipped)
	out = binary.LittleEndian.AppendUint32(out, 0)
	out = append(out, payload...)
	for len(out)%blockAlign != 0 {
		out = append(out, 0)
	}
	return out
}

func saturate(v uint64) uint32 { return uint32(min(v, math.MaxUint32)) }
