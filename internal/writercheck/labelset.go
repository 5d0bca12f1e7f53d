package writercheck

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Memory reads the memory of a process.
type Memory interface {
	// ReadAt fills p from address addr, or returns an error.
	ReadAt(p []byte, addr uint64) error
}

// Layouts of the custom labels ABIs: storage and count, then one label after the other of key.len,
// key.buf, value.len, value.buf.
const (
	setBytes   = 16
	labelBytes = 32
	wordBytes  = 8
)

// labelSet is what a thread had published when it was stopped.
type labelSet struct {
	addr           uint64 // of the set
	err            error  // why it could not be read
	storage, count uint64
	storageErr     error
	labels         []label
}

// label is one that has a key.
type label struct {
	keyLen, keyBuf, valueLen, valueBuf uint64
	keyErr, valueErr                   error
	key                                string // as far as it is read
}

// readLabelSet copies what it needs of the set at an address while the thread stands still.
func readLabelSet(mem Memory, addr uint64) *labelSet {
	s := &labelSet{addr: addr}
	var head [setBytes]byte
	if s.err = mem.ReadAt(head[:], addr); s.err != nil {
		return s
	}
	s.storage, s.count = binary.LittleEndian.Uint64(head[:]), binary.LittleEndian.Uint64(head[wordBytes:])
	if s.count == 0 || s.storage == 0 {
		return s
	}
	slots := make([]byte, labelBytes*min(s.count, record.MaxLabelSlots))
	if s.storageErr = mem.ReadAt(slots, s.storage); s.storageErr == nil {
		s.storageErr = readLast(mem, s.storage, s.count, labelBytes)
	}
	if s.storageErr != nil {
		return s
	}
	var b [record.MaxLabelValueBytes]byte
	for ; len(slots) > 0 && len(s.labels) <= record.MaxLabels; slots = slots[labelBytes:] {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(slots[wordBytes*i:]) }
		l := label{keyLen: word(0), keyBuf: word(1), valueLen: word(2), valueBuf: word(3)}
		if l.keyBuf == 0 {
			continue // a hole, of which nothing else counts
		}
		key := b[:min(l.keyLen, record.MaxLabelKeyBytes)]
		if l.keyErr = readBytes(mem, key, l.keyBuf, l.keyLen); l.keyErr == nil {
			l.key = string(key)
		}
		if l.valueBuf != 0 {
			l.valueErr = readBytes(mem, b[:min(l.valueLen, record.MaxLabelValueBytes)], l.valueBuf, l.valueLen)
		}
		s.labels = append(s.labels, l)
	}
	return s
}

// readBytes reads the beginning of a string of a length, and the last byte of one that is longer; an
// empty one from nowhere.
func readBytes(mem Memory, p []byte, addr, length uint64) error {
	if len(p) == 0 {
		return nil
	}
	if err := mem.ReadAt(p, addr); err != nil || uint64(len(p)) == length {
		return err
	}
	return readLast(mem, addr, length, 1)
}

// readLast reads the last byte of so many elements, at least one, which begin at an address.
func readLast(mem Memory, addr, count, size uint64) error {
	if count > (^addr)/size {
		return errors.New("it ends beyond all addresses")
	}
	var last [1]byte
	return mem.ReadAt(last[:], addr+count*size-1)
}

// judge counts what holds of a set. It reports whether there are labels, and whether a rule is
// broken.
func (s *labelSet) judge(t *tally, f Format) (present, ok bool) {
	if !t.check(f.rule(ruleSet), s.err == nil, "set at %#x: %v", s.addr, said(s.err)) {
		return false, false
	}
	if s.count == 0 {
		return false, true // storage may be garbage
	}
	ok = t.check(f.rule(ruleStorage), s.storage != 0 && s.storageErr == nil, "set at %#x: storage %#x, count %d: %v", s.addr, s.storage, s.count, said(s.storageErr))
	if !ok {
		return false, false
	}
	t.check(f.rule(ruleSetAlignment), s.addr%wordBytes == 0 && s.storage%wordBytes == 0, "set at %#x, storage at %#x", s.addr, s.storage)
	fits, bytes := len(s.labels) <= record.MaxLabels && s.count <= record.MaxLabelSlots, uint64(record.LabelBlockBytes)
	keys := map[string]bool{}
	for i := range s.labels {
		l := &s.labels[i]
		ok = t.check(f.rule(ruleKeys), l.keyErr == nil, "a key of %d bytes at %#x: %v", l.keyLen, l.keyBuf, said(l.keyErr)) && ok
		if t.check(f.rule(ruleValuesPresent), l.valueBuf != 0, "the value of %q at %#x", l.key, l.valueBuf) {
			ok = t.check(f.rule(ruleValues), l.valueErr == nil, "the value of %q, %d bytes at %#x: %v", l.key, l.valueLen, l.valueBuf, said(l.valueErr)) && ok
		} else {
			ok = false
		}
		if l.keyErr == nil {
			t.check(f.rule(ruleUnique), !keys[l.key], "%q", l.key)
			keys[l.key] = true
		}
		fits = fits && l.keyLen <= record.MaxLabelKeyBytes && l.valueLen <= record.MaxLabelValueBytes
		bytes += record.RawLabelBytes + min(l.keyLen, record.MaxLabelKeyBytes) + min(l.valueLen, record.MaxLabelValueBytes)
	}
	fits = fits && bytes <= record.MaxSlotEnd
	t.check(f.rule(ruleLimits), fits, "a set of %d labels%s", s.count, s.longest())
	return len(s.labels) > 0, ok
}

// longest says how long the longest key and value are.
func (s *labelSet) longest() string {
	var key, value uint64
	for i := range s.labels {
		key, value = max(key, s.labels[i].keyLen), max(value, s.labels[i].valueLen)
	}
	return fmt.Sprintf(", keys of up to %d bytes, values of up to %d", key, value)
}
