package labelread

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/record"
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
func (s *source) threadContext(addr uint64, fromHeap bool) record.Outcome {
	head := make([]byte, contextBytes, contextBytes+record.MaxContextAttrsBytes)
	if err := s.mem.ReadAt(head, addr); err != nil {
		return s.fault("the thread context record", err)
	}
	switch valid := head[contextValid]; valid {
	case 1:
	case 0:
		return record.OutcomeUpdating
	default:
		return s.invalid("a thread context record whose field valid is %d", valid)
	}
	size := int(binary.LittleEndian.Uint16(head[contextAttrsSize:]))
	s.block.count = uint32(size)
	if fromHeap && size > record.MaxContextAttrsBytes {
		return s.invalid("%d bytes of attributes", size)
	}
	bytes := head[:contextBytes+min(size, record.MaxContextAttrsBytes)]
	if len(bytes) > contextBytes {
		if err := s.mem.ReadAt(bytes[contextBytes:], addr+contextBytes); err != nil {
			return s.fault("the attributes of the thread context record", err)
		}
	}
	s.block.payload = bytes
	if size > record.MaxContextAttrsBytes {
		return record.OutcomeTruncated
	}
	return record.OutcomePresent
}
