package labelread

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Layouts of the custom labels ABI, v0 and v1: custom_labels_labelset_t (of
// which tls_t of v0 has the first two words), and custom_labels_label_t.
const (
	setBytes  = 16 // storage, count; capacity has no meaning to readers
	slotBytes = 32 // key.len, key.buf, value.len, value.buf
)

// slot is a custom_labels_label_t.
type slot struct{ keyLen, keyBuf, valueLen, valueBuf uint64 }

// slotAt reads a slot. Go has the address of a string before its length.
func slotAt(b []byte, goStrings bool) slot {
	s := slot{
		keyLen: binary.LittleEndian.Uint64(b), keyBuf: binary.LittleEndian.Uint64(b[8:]),
		valueLen: binary.LittleEndian.Uint64(b[16:]), valueBuf: binary.LittleEndian.Uint64(b[24:]),
	}
	if goStrings {
		return slot{keyLen: s.keyBuf, keyBuf: s.keyLen, valueLen: s.valueBuf, valueBuf: s.valueLen}
	}
	return s
}

// labelSet copies the live labels of the set at an address. goStrings: they are
// Go's, whose slices of labels begin as a set does.
func (s *source) labelSet(addr uint64, goStrings bool) record.Outcome {
	var head [setBytes]byte
	if err := s.mem.ReadAt(head[:], addr); err != nil {
		return s.fault("the label set", err)
	}
	storage, count := binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[8:])
	s.block.count = saturate(count)
	if count == 0 {
		return record.OutcomeNone // storage may be garbage then
	}
	if storage == 0 {
		return s.invalid("a label set with a count of %d and no storage", count)
	}
	storageBytes := make([]byte, slotBytes*min(count, record.MaxLabelSlots))
	if err := s.mem.ReadAt(storageBytes, storage); err != nil {
		return s.fault("the storage of the label set", err)
	}
	slots := make([]slot, len(storageBytes)/slotBytes)
	for i := range slots {
		slots[i] = slotAt(storageBytes[slotBytes*i:], goStrings)
	}
	if count > record.MaxLabelSlots {
		return s.copySlots(slots, goStrings, record.OutcomeTruncated)
	}
	return s.copySlots(slots, goStrings, record.OutcomePresent)
}

// copySlots copies the live ones of some labels. outcome is what it is so far.
func (s *source) copySlots(slots []slot, goStrings bool, outcome record.Outcome) record.Outcome {
	live := 0
	for _, slot := range slots {
		if !goStrings && slot.keyBuf == 0 { // Go's empty string may be anywhere, also at 0
			continue // a hole: its value may be freed memory
		}
		if !goStrings && slot.valueBuf == 0 {
			s.block.skipped++
			continue
		}
		if live == record.MaxLabels {
			return record.OutcomeTruncated
		}
		switch s.label(slot) {
		case record.OutcomeFault:
			return record.OutcomeFault
		case record.OutcomeNone:
			return record.OutcomeTruncated
		case record.OutcomeTruncated:
			outcome = record.OutcomeTruncated
		}
		live++
	}
	if live == 0 && outcome == record.OutcomePresent {
		return record.OutcomeNone // nothing but holes
	}
	return outcome
}

// label copies one label. The outcome is none when there is no room for it, and
// truncated when only a part was copied.
func (s *source) label(slot slot) record.Outcome {
	key, value := min(slot.keyLen, record.MaxLabelKeyBytes), min(slot.valueLen, record.MaxLabelValueBytes)
	if !s.block.room(record.RawLabelBytes + int(key+value)) {
		return record.OutcomeNone
	}
	head := make([]byte, 0, record.RawLabelBytes+key+value)
	head = binary.LittleEndian.AppendUint32(head, saturate(slot.keyLen))
	head = binary.LittleEndian.AppendUint32(head, saturate(slot.valueLen))
	head = binary.LittleEndian.AppendUint16(head, uint16(key))
	head = binary.LittleEndian.AppendUint16(head, uint16(value))
	raw := head[:cap(head)]
	if err := s.bytes(raw[record.RawLabelBytes:record.RawLabelBytes+key], slot.keyBuf); err != nil {
		return s.fault("a key", err)
	}
	if err := s.bytes(raw[record.RawLabelBytes+key:], slot.valueBuf); err != nil {
		return s.fault("a value", err)
	}
	s.block.payload = append(s.block.payload, raw...)
	if key < slot.keyLen || value < slot.valueLen {
		return record.OutcomeTruncated
	}
	return record.OutcomePresent
}

// bytes reads a string of a label. An empty one is read from nowhere.
func (s *source) bytes(p []byte, addr uint64) error {
	if len(p) == 0 {
		return nil
	}
	return s.mem.ReadAt(p, addr)
}
