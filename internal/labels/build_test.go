package labels

import (
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// raw describes one label of a v0 or v1 block. Lengths default to the bytes.
type raw struct {
	key, value       string
	keyLen, valueLen uint32
}

func kv(key, value string) raw { return raw{key: key, value: value} }

func (r raw) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, max(r.keyLen, uint32(len(r.key))))
	b = binary.LittleEndian.AppendUint32(b, max(r.valueLen, uint32(len(r.value))))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.key)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(r.value)))
	b = append(b, r.key...)
	return append(b, r.value...)
}

// blockOf frames a payload as struct label_block does.
func blockOf(abi record.ABI, outcome record.Outcome, count, skipped uint32, payload []byte) []byte {
	b := []byte{byte(abi), byte(outcome)}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, count)
	b = binary.LittleEndian.AppendUint32(b, skipped)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, payload...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	return b
}

func custom(abi record.ABI, outcome record.Outcome, labels ...raw) []byte {
	var payload []byte
	for _, l := range labels {
		payload = l.append(payload)
	}
	return blockOf(abi, outcome, uint32(len(labels)), 0, payload)
}

func v0(labels ...raw) []byte { return custom(record.ABIV0, record.OutcomePresent, labels...) }
func v1(labels ...raw) []byte { return custom(record.ABIV1, record.OutcomePresent, labels...) }

// contextRecord describes a thread context record.
type contextRecord struct {
	link  Link
	valid byte
	flags byte
	size  int // attrs-data-size; 0: len(attrs)
	attrs []byte
}

func (r contextRecord) payload() []byte {
	size := r.size
	if size == 0 {
		size = len(r.attrs)
	}
	b := append([]byte(nil), r.link.TraceID[:]...)
	b = append(b, r.link.SpanID[:]...)
	b = append(b, r.valid, r.flags)
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	return append(b, r.attrs...)
}

func (r contextRecord) block() []byte {
	return blockOf(record.ABIThreadContext, record.OutcomePresent, uint32(len(r.attrs)), 0, r.payload())
}

func attr(index byte, value string) []byte {
	return append([]byte{index, byte(len(value))}, value...)
}

func join(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

var linkA = Link{TraceID: [16]byte{1, 2, 3}, SpanID: [8]byte{4, 5}}
var linkB = Link{TraceID: [16]byte{9}, SpanID: [8]byte{8}}
