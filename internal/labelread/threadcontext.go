package labelread

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// Layout of the head of a thread context record (OTEP 4947, "Thread Local
// Reference Data"): trace-id, span-id, valid, trace-flags, attrs-data-size.
const (
	contextBytes     = 28
	contextValid     = 24
	contextAttrsSize = 26
)

// threadContext copies the record at an address. One that was found in V8's heap
// is no record if it claims more attributes than are read of any.
func (s *source) threadContext(addr uint64, fromHeap bool) labels.Outcome {
	head := make([]byte, contextBytes, contextBytes+maxAttrsBytes)
	if err := s.mem.ReadAt(head, addr); err != nil {
		return s.fault("the thread context record", err)
	}
	switch valid := head[contextValid]; valid {
	case 1:
	case 0:
		return labels.OutcomeUpdating
	default:
		return s.invalid("a thread context record whose field valid is %d", valid)
	}
	size := int(binary.LittleEndian.Uint16(head[contextAttrsSize:]))
	s.block.count = uint32(size)
	if fromHeap && size > maxAttrsBytes {
		return s.invalid("%d bytes of attributes", size)
	}
	record := head[:contextBytes+min(size, maxAttrsBytes)]
	if len(record) > contextBytes {
		if err := s.mem.ReadAt(record[contextBytes:], addr+contextBytes); err != nil {
			return s.fault("the attributes of the thread context record", err)
		}
	}
	s.block.payload = record
	if size > maxAttrsBytes {
		return labels.OutcomeTruncated
	}
	return labels.OutcomePresent
}
