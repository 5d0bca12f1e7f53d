// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"
)

const unlimited = 1 << 62

// in wraps bytes as a field in a field and so on, the outermost number first.
func in(data []byte, numbers ...protowire.Number) []byte {
	for i := len(numbers) - 1; i >= 0; i-- {
		data = protowire.AppendBytes(protowire.AppendTag(nil, numbers[i], protowire.BytesType), data)
	}
	return data
}

// empty are so many empty messages, as a field in a field and so on.
func empty(n int, numbers ...protowire.Number) []byte {
	last := len(numbers) - 1
	return in(bytes.Repeat(in(nil, numbers[last]), n), numbers[:last]...)
}

// number is a field with a number.
func number(field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), n)
}

// frame is a request in a file of many.
func frame(request []byte) []byte {
	n := len(request)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, request...)
}

// looked is a dictionary of which everything has been looked up.
func looked(p pprofile.Profiles) *dictionary {
	d := newDictionary(p.Dictionary())
	for i := range p.Dictionary().LocationTable().Len() {
		d.location(int32(i))
	}
	for i := range p.Dictionary().AttributeTable().Len() {
		d.attribute(int32(i))
	}
	return d
}

// live is the memory that is in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// requestBombs are requests of few bytes whose messages take much memory.
func requestBombs(n int) map[string][]byte {
	long := []byte(strings.Repeat("x", maxTextBytes))
	known := append(append(in(nil, 2, 1), in(nil, 2, 3)...), in(nil, 2, 5)...) // mapping, function, string
	return map[string][]byte{
		"resources":          empty(n, 1),
		"resource attribute": empty(n, 1, 1, 1),
		"entities":           empty(n, 1, 1, 3),
		"scopes":             empty(n, 1, 2),
		"profiles":           empty(n, 1, 2, 2),
		"samples":            empty(n, 1, 2, 2, 2),
		"values":             in(make([]byte, 8*n), 1, 2, 2, 2, 4),
		"unpacked values":    in(bytes.Repeat(number(4, 1), 8*n), 1, 2, 2, 2),
		"indexes":            in(make([]byte, 8*n), 1, 2, 2, 2, 2),
		"frames":             in(make([]byte, 8*n), 2, 7, 1),
		"mappings":           empty(n, 2, 1),
		"locations":          append(empty(n, 2, 2), known...),
		"lines":              append(empty(n, 2, 2, 3), known...),
		"functions":          empty(n, 2, 3),
		"links":              empty(n, 2, 4),
		"strings":            empty(n, 2, 5),
		"attributes":         append(empty(n, 2, 6), known...),
		"stacks":             empty(n, 2, 7),
		"list values":        empty(n, 2, 6, 2, 5, 1),
		"list pairs":         empty(n, 2, 6, 2, 6, 1),
		"one long key":       append(in(bytes.Repeat(in(number(1, 1), 6), n), 2), append(in(nil, 2, 5), in(long, 2, 5)...)...),
	}
}

// TestRequestWeight: nothing takes more memory than it was taken to.
func TestRequestWeight(t *testing.T) {
	const n = 50_000
	for name, data := range requestBombs(n) {
		w := weight{limit: unlimited}
		require.NoError(t, w.message(data, requestShape(), 0), name)
		d := newDecoder(unlimited)
		before := live()
		require.NoError(t, d.request(data, func(p pprofile.Profiles) {
			dict := looked(p)
			took := live() - before
			require.LessOrEqual(t, took, w.bytes+1<<20, name)
			t.Logf("%-20s %8d bytes take %9d, estimated %9d", name, len(data), took, w.bytes)
			runtime.KeepAlive(dict)
			runtime.KeepAlive(p)
		}), name)
	}
}

// pprofBombs are the same of pprof.
func pprofBombs(n int) map[string][]byte {
	numbered := func(field protowire.Number) []byte {
		var b []byte
		for i := range n {
			b = append(b, in(number(1, uint64(i+1)), field)...)
		}
		return b
	}
	kind := append(in(nil, 6), append(in([]byte("cpu"), 6), in([]byte("nanoseconds"), 6)...)...)
	kind = append(kind, in(append(number(1, 1), number(2, 2)...), 1)...)
	sample := in([]byte{0}, 2)
	return map[string][]byte{
		"types":     append(empty(n, 1), kind...),
		"samples":   append(bytes.Repeat(in(sample, 2), n), kind...),
		"labels":    append(bytes.Repeat(in(append(in(append(number(1, 1), number(2, 2)...), 3), sample...), 2), n), kind...),
		"mappings":  append(numbered(3), kind...),
		"locations": append(numbered(4), kind...),
		"lines":     append(in(append(number(1, 1), empty(n, 4)...), 4), kind...),
		"functions": append(numbered(5), kind...),
		"strings":   append(append([]byte{}, kind...), empty(n, 6)...),
		"comments":  append(in(make([]byte, n), 13), kind...),
	}
}

func TestPprofWeight(t *testing.T) {
	const n = 50_000
	for name, data := range pprofBombs(n) {
		w := weight{limit: unlimited}
		require.NoError(t, w.message(data, pprofShape(), 0), name)
		before := live()
		p, err := profile.ParseUncompressed(data)
		require.NoError(t, err, name)
		_ = p.CheckValid()
		walkPprof(p, func(*sample) {})
		took := live() - before
		require.LessOrEqual(t, took, w.bytes+1<<20, name)
		t.Logf("%-20s %8d bytes take %9d, estimated %9d", name, len(data), took, w.bytes)
		runtime.KeepAlive(p)
	}
}

func TestWeightOfJSON(t *testing.T) {
	const n = 50_000
	line := []byte(`{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{}` + strings.Repeat(",{}", n) + `]}]}]}]}`)
	d := newDecoder(unlimited)
	before := live()
	require.NoError(t, d.line(line, func(p pprofile.Profiles) {
		took := live() - before
		require.Greater(t, took, int64(4<<20), "it does take memory")
		require.Error(t, checkJSONWeight(line, took))
		runtime.KeepAlive(p)
	}))
	require.NoError(t, checkJSONWeight([]byte(`{"a":"[[[[{{{{\"{{{{,,,,"}`), 1200), "texts are texts")
	require.ErrorIs(t, checkJSONWeight(bytes.Repeat([]byte("["), maxNesting+1), unlimited), errNested)
}

// TestTooLarge: what would take more is refused in each form, what takes less is not.
func TestTooLarge(t *testing.T) {
	took := 0
	d := newDecoder(1 << 20)
	samples := func(n int) []byte { return append(empty(n, 2), empty(3, 6)...) }
	for name, decode := range map[string]func(n int) error{
		"request": func(n int) error { return d.request(empty(n, 1), func(pprofile.Profiles) { took++ }) },
		"line": func(n int) error {
			return d.line([]byte(`{"resourceProfiles":[{}`+strings.Repeat(",{}", n)+`]}`), func(pprofile.Profiles) { took++ })
		},
		"pprof": func(n int) error {
			if err := d.profile(samples(n), func(*profile.Profile) {}); !errors.Is(err, errNoPprof) {
				return err
			}
			took++ // it was decoded, and has no values
			return nil
		},
	} {
		took = 0
		require.NoError(t, decode(100), name)
		require.Equal(t, 1, took, name)
		var tooLarge *tooLargeError
		require.ErrorAs(t, decode(50_000), &tooLarge, name)
		require.Equal(t, 1, took, name)
	}
}

// nested is a request with a label whose value is a list in a list and so on, of about so
// many bytes.
func nested(size int) []byte {
	b := make([]byte, size)
	at := size
	for at > 64 {
		for _, field := range []byte{1, 5} { // a value of a list, the list of a value
			head := protowire.AppendVarint([]byte{field<<3 | 2}, uint64(size-at))
			at -= len(head)
			copy(b[at:], head)
		}
	}
	return in(b[at:], 2, 6, 2)
}

func TestNestedRequest(t *testing.T) {
	visit := func(pprofile.Profiles) {}
	require.NoError(t, newDecoder(unlimited).request(nested(150), visit))
	require.ErrorIs(t, newDecoder(unlimited).request(nested(1000), visit), errNested)
}

// TestWorkIsBounded: samples that name one stack again and again end.
func TestWorkIsBounded(t *testing.T) {
	f := newFixture().process(7, "writer")
	stack := make([]string, 1)
	f.sample(1, stack)
	frames := f.dict.StackTable().At(1).LocationIndices()
	for frames.Len() < maxFrames {
		frames.Append(frames.At(0))
	}
	const most = maxWork/maxFrames + 2
	for range 2 * most {
		s := f.profile.Samples().AppendEmpty()
		s.SetStackIndex(1)
		s.Values().Append(1)
	}
	b := walk(f.profiles, func(*sample) {})
	require.LessOrEqual(t, b.samples, int64(most))
	require.Positive(t, b.samples)
	require.EqualValues(t, 2*most+1, b.samples+b.malformed)

	frames.Append(frames.At(0))
	require.Zero(t, walk(f.profiles, func(*sample) {}).samples, "a stack that nobody has")
}
