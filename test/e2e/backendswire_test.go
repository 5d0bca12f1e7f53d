//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// A wireMessage is a message of protobuf by field number, read without pdata: what is checked
// here is what pdata writes. Varints are numbers, everything else is bytes.
type wireMessage map[protowire.Number][]wireValue

type wireValue struct {
	number uint64
	bytes  []byte
	isText bool // length-delimited
}

func parseWire(data []byte) (wireMessage, error) {
	m := wireMessage{}
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		data = data[n:]
		var v wireValue
		switch kind {
		case protowire.VarintType:
			v.number, n = protowire.ConsumeVarint(data)
		case protowire.Fixed64Type:
			v.number, n = protowire.ConsumeFixed64(data)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(data)
			v.isText = true
		default:
			return nil, fmt.Errorf("field %d has wire type %d", field, kind)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		data = data[n:]
		m[field] = append(m[field], v)
	}
	return m, nil
}

// wireReader parses messages that are within others and keeps the first error.
type wireReader struct{ err error }

func (r *wireReader) message(v wireValue) wireMessage {
	m, err := parseWire(v.bytes)
	if err != nil && r.err == nil {
		r.err = err
	}
	return m
}

func (r *wireReader) messages(m wireMessage, field protowire.Number) (all []wireMessage) {
	for _, v := range m[field] {
		all = append(all, r.message(v))
	}
	return all
}

// numbers are those of a repeated field, packed or not.
func (r *wireReader) numbers(m wireMessage, field protowire.Number) (all []uint64) {
	for _, v := range m[field] {
		if !v.isText {
			all = append(all, v.number)
			continue
		}
		for data := v.bytes; len(data) > 0; {
			x, n := protowire.ConsumeVarint(data)
			if n < 0 {
				r.err = protowire.ParseError(n)
				return all
			}
			all, data = append(all, x), data[n:]
		}
	}
	return all
}

func (m wireMessage) number(field protowire.Number) uint64 {
	if v := m[field]; len(v) > 0 {
		return v[len(v)-1].number
	}
	return 0
}

func (m wireMessage) text(field protowire.Number) string {
	if v := m[field]; len(v) > 0 {
		return string(v[len(v)-1].bytes)
	}
	return ""
}
