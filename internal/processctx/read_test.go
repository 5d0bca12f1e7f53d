package processctx

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

var errFault = errors.New("bad address")

// memory is the memory of a process by the addresses of its pieces.
type memory struct {
	pieces map[uint64][]byte
	// before is called ahead of each read, so that a test can play the publisher.
	before func(addr uint64)
}

func (m *memory) ReadAt(p []byte, addr uint64) error {
	if m.before != nil {
		m.before(addr)
	}
	for start, piece := range m.pieces {
		if addr >= start && addr+uint64(len(p)) <= start+uint64(len(piece)) {
			copy(p, piece[addr-start:])
			return nil
		}
	}
	return errFault
}

const (
	mapping = 0x7f00_0000_0000
	heap    = 0x1000 // a payload may lie at a low address
)

func published(payload []byte) *memory {
	h := make([]byte, headerBytes)
	copy(h, signature)
	binary.LittleEndian.PutUint32(h[8:], version)
	binary.LittleEndian.PutUint32(h[12:], uint32(len(payload)))
	binary.LittleEndian.PutUint64(h[16:], 77)
	binary.LittleEndian.PutUint64(h[24:], heap)
	return &memory{pieces: map[uint64][]byte{mapping: h, heap: bytes.Clone(payload)}}
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func texts(key string, values ...string) *commonpb.KeyValue {
	list := &commonpb.ArrayValue{}
	for _, v := range values {
		list.Values = append(list.Values, text("", v).GetValue())
	}
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}}
}

// message encodes a ProcessContext.
func message(tb testing.TB, resource []*commonpb.KeyValue, attributes ...*commonpb.KeyValue) []byte {
	tb.Helper()
	b, err := proto.Marshal(&resourcepb.Resource{Attributes: resource})
	require.NoError(tb, err)
	out := protowire.AppendBytes(protowire.AppendTag(nil, fieldResource, protowire.BytesType), b)
	for _, a := range attributes {
		b, err := proto.Marshal(a)
		require.NoError(tb, err)
		out = protowire.AppendBytes(protowire.AppendTag(out, fieldAttributes, protowire.BytesType), b)
	}
	return out
}

func TestRead(t *testing.T) {
	payload := message(t,
		[]*commonpb.KeyValue{text("service.name", "shop"), text("threadlocal.x", "no"), text("service.name", "twice"), text("", "no key"), {Key: "no.value"}, text("empty", "")},
		text(keySchema, "tls_v1"), texts(keyKeyMap, "route", "tenant"), text("other", "ignored"))
	// A field that a later version may add.
	payload = protowire.AppendVarint(protowire.AppendTag(payload, 9, protowire.VarintType), 1)
	c, err := Read(published(payload), mapping)
	require.NoError(t, err)
	require.Equal(t, uint64(77), c.PublishedAtNs)
	require.Equal(t, SchemaTLS, c.Schema)
	require.Equal(t, []string{"route", "tenant"}, c.Keys)
	require.Len(t, c.Resource, 2)
	require.Equal(t, "shop", c.Resource[0].GetValue().GetStringValue())
	require.Equal(t, "empty", c.Resource[1].GetKey())
	require.Equal(t, 3, c.LeftOut)

	empty, err := Read(published(nil), mapping)
	require.NoError(t, err)
	require.Equal(t, &Context{PublishedAtNs: 77}, empty)
}

func TestReadRefuses(t *testing.T) {
	good := message(t, []*commonpb.KeyValue{text("service.name", "shop")})
	change := func(f func(h []byte)) *memory {
		m := published(good)
		f(m.pieces[mapping])
		return m
	}
	for name, c := range map[string]struct {
		mem *memory
		err error
	}{
		"not mapped":   {&memory{}, errFault},
		"cut short":    {&memory{pieces: map[uint64][]byte{mapping: make([]byte, headerBytes-1)}}, errFault},
		"signature":    {change(func(h []byte) { h[0] = 'o' }), ErrNotContext},
		"version 1":    {change(func(h []byte) { h[8] = 1 }), ErrNotContext},
		"being set up": {change(func(h []byte) { clear(h[16:24]) }), ErrUpdating},
		"too large":    {change(func(h []byte) { binary.LittleEndian.PutUint32(h[12:], MaxPayloadBytes+1) }), ErrTooLarge},
		"huge":         {change(func(h []byte) { binary.LittleEndian.PutUint32(h[12:], 1<<32-1) }), ErrTooLarge},
		"past the end": {change(func(h []byte) { h[12]++ }), errFault},
		"null payload": {change(func(h []byte) { clear(h[24:]) }), errFault},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(c.mem, mapping)
			require.ErrorIs(t, err, c.err)
		})
	}
}

func TestReadMalformed(t *testing.T) {
	deep := text("", "leaf").GetValue()
	for range maxDepth {
		deep = &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{deep}}}}
	}
	notUTF8 := strings.Replace(string(message(t, []*commonpb.KeyValue{text("service.name", "shop")})), "shop", "\xff\xfe\xfd\xfc", 1)
	for name, payload := range map[string][]byte{
		"tag":       {0xff},
		"length":    {0x0a, 0x05, 0x00},
		"varint":    {0x48, 0x80},
		"group":     {0x4b},
		"resource":  {0x0a, 0x02, 0x0a, 0x7f},
		"attribute": {0x12, 0x02, 0x0a, 0x7f},
		"too deep":  message(t, []*commonpb.KeyValue{{Key: "k", Value: deep}}),
		"not UTF-8": []byte(notUTF8),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(published(payload), mapping)
			var format *FormatError
			require.ErrorAs(t, err, &format)
		})
	}
}

func TestReadBounds(t *testing.T) {
	var many []*commonpb.KeyValue
	keys := make([]string, maxKeys+1)
	for i := range MaxAttributes + 5 {
		many = append(many, text(fmt.Sprint("k", i), "v"))
	}
	c, err := Read(published(message(t, many, texts(keyKeyMap, keys...))), mapping)
	require.NoError(t, err)
	require.Len(t, c.Resource, MaxAttributes)
	require.Equal(t, 5, c.LeftOut)
	require.Len(t, c.Keys, maxKeys)
}

// Values that hold many others take more memory than they may, and others stay.
func TestReadNestedBounds(t *testing.T) {
	list := func(n int) *commonpb.KeyValue {
		values := make([]*commonpb.AnyValue, n)
		for i := range values {
			values[i] = &commonpb.AnyValue{}
		}
		list := &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: values}}
		return &commonpb.KeyValue{Key: fmt.Sprint("list", n), Value: &commonpb.AnyValue{Value: list}}
	}
	payload := message(t, []*commonpb.KeyValue{text("before", "v"), list(10_000), list(500), list(501), list(502), text("after", "v")})
	require.Less(t, len(payload), 64<<10)
	c, err := Read(published(payload), mapping)
	require.NoError(t, err)
	require.Equal(t, 2, c.LeftOut)
	require.Len(t, c.Resource, 4)
	require.Equal(t, "after", c.Resource[3].GetKey())
	require.LessOrEqual(t, ResourceBytes(c.Resource), maxResourceBytes)
}

// A map with more keys than a resource may have is left out, wherever it is.
func TestReadLargeMaps(t *testing.T) {
	of := func(name string, n int) *commonpb.KeyValue {
		list := &commonpb.KeyValueList{}
		for i := range n {
			list.Values = append(list.Values, text(fmt.Sprint("k", i), "v"))
		}
		return &commonpb.KeyValue{Key: name, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: list}}}
	}
	within := of("map within a map", 0)
	within.GetValue().GetKvlistValue().Values = []*commonpb.KeyValue{of("large", MaxAttributes+1)}
	list := &commonpb.ArrayValue{Values: []*commonpb.AnyValue{of("", MaxAttributes+1).GetValue()}}
	inList := &commonpb.KeyValue{Key: "map within a list", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: list}}}
	c, err := Read(published(message(t, []*commonpb.KeyValue{of("large", MaxAttributes+1), of("small", MaxAttributes), within, inList})), mapping)
	require.NoError(t, err)
	require.Equal(t, 3, c.LeftOut)
	require.Len(t, c.Resource, 1)
	require.Equal(t, "small", c.Resource[0].GetKey())
}

// A publisher that rewrites its context in place while it is read: what comes
// out is one version or the other, never a mixture.
func TestReadWhileUpdated(t *testing.T) {
	first := message(t, []*commonpb.KeyValue{text("service.name", "aaaa"), text("service.version", "aaaa")})
	second := message(t, []*commonpb.KeyValue{text("service.name", "bbbb"), text("service.version", "bbbb")})
	for step := range 4 {
		m := published(first)
		n := 0
		m.before = func(uint64) {
			h := m.pieces[mapping]
			switch n - step {
			case 0:
				clear(h[16:24])
				copy(m.pieces[heap], second[:len(second)/2])
			case 1:
				copy(m.pieces[heap], second)
				h[16] = 78
			}
			n++
		}
		c, err := Read(m, mapping)
		if err != nil {
			require.ErrorIs(t, err, ErrUpdating, "step %d", step)
			continue
		}
		name, version := c.Resource[0].GetValue().GetStringValue(), c.Resource[1].GetValue().GetStringValue()
		require.Equal(t, name, version, "step %d", step)
		require.Equal(t, map[string]uint64{"aaaa": 77, "bbbb": 78}[name], c.PublishedAtNs)
	}
}

// A header is copied while another is written: it has the size of before, and all else of the new one.
func TestReadTornHeader(t *testing.T) {
	m := published(message(t, []*commonpb.KeyValue{text("service.name", "a")}))
	size, reads := m.pieces[mapping][12], 0
	m.before = func(uint64) {
		m.pieces[mapping][12] = size
		if reads == 0 {
			m.pieces[mapping][12] = 0
		}
		reads++
	}
	c, err := Read(m, mapping)
	require.NoError(t, err)
	require.Len(t, c.Resource, 1)
}

// One that never stops is given up.
func TestReadGivesUp(t *testing.T) {
	m := published(message(t, nil))
	reads := 0
	m.before = func(uint64) {
		reads++
		m.pieces[mapping][16]++
	}
	_, err := Read(m, mapping)
	require.ErrorIs(t, err, ErrUpdating)
	require.LessOrEqual(t, reads, 3*readAttempts)
}

// Freed after publication: what the pointer leads to may be anything.
func TestReadFaultWhileUpdated(t *testing.T) {
	m := published(message(t, nil))
	m.pieces[heap] = nil
	m.pieces[mapping][12] = 8
	m.before = func(addr uint64) {
		if addr == heap {
			m.pieces[mapping][16] = 78
			m.pieces[heap] = message(t, []*commonpb.KeyValue{text("a", "b")})[:8]
		}
	}
	c, err := Read(m, mapping)
	if err == nil {
		require.Equal(t, uint64(78), c.PublishedAtNs)
	}
}

func TestIsMapping(t *testing.T) {
	rw := procfs.PermRead | procfs.PermWrite
	for _, c := range []struct {
		path  string
		perms procfs.Perms
		want  bool
	}{
		{"/memfd:OTEL_CTX", rw, true},
		{"/memfd:OTEL_CTX", rw | procfs.PermShared, true},
		{"/memfd:OTEL_CTX", procfs.PermRead, true},
		{"[anon_shmem:OTEL_CTX]", rw, true},
		{"[anon:OTEL_CTX]", rw, true},
		{"/memfd:OTEL_CTX_2", rw, true}, // starts with
		{"/memfd:OTEL_CTX", rw | procfs.PermExec, false},
		{"/memfd:OTEL_CTX", 0, false},
		{"/memfd:other", rw, false},
		{"[anon:other]", rw, false},
		{"/tmp/memfd:OTEL_CTX", rw, false},
		{"", rw, false},
	} {
		require.Equal(t, c.want, IsMapping(&procfs.Mapping{Path: c.path, Perms: c.perms}), "%+v", c)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(message(f, []*commonpb.KeyValue{text("service.name", "shop")}, text(keySchema, "tls_v1"), texts(keyKeyMap, "a", "b")))
	f.Add([]byte{0x0a, 0x02, 0x0a, 0x7f})
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := decode(payload)
		if err != nil {
			require.Nil(t, c)
			return
		}
		require.LessOrEqual(t, len(c.Resource), MaxAttributes)
		require.LessOrEqual(t, len(c.Keys), maxKeys)
		seen := map[string]bool{}
		for _, a := range c.Resource {
			require.False(t, seen[a.GetKey()] || a.GetKey() == "" || strings.HasPrefix(a.GetKey(), threadLocalPrefix))
			seen[a.GetKey()] = true
		}
	})
}
