// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

const unlimited = 1 << 62

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

// walked walks a batch while it and its dictionary are held, and returns the most that is live
// while a sample is handed over.
func walked(p pprofile.Profiles) (live int64) {
	Walk(p, func(*sample.Sample) { live = max(live, profiletest.Live()) })
	return live
}

// fits says whether a decoder takes a request that has been taken to be so large.
func fits(data []byte, limit int64) bool {
	_, err := NewDecoder(limit).Request(data)
	return err == nil
}

// TestRequestWeight: nothing takes more memory than it was taken to.
func TestRequestWeight(t *testing.T) {
	const n = 50_000
	bombs := profiletest.RequestBombs(n)
	for name, values := range map[string][]byte{
		"points":              profiletest.In(make([]byte, 8*n), 4),
		"points, unpacked":    bytes.Repeat(profiletest.Number(4, 0), 8*n),
		"points, by the time": profiletest.In(make([]byte, 8*8*n), 5),
	} {
		bombs[name] = counted(values)
	}
	for name, data := range bombs {
		before := profiletest.Live()
		p, err := NewDecoder(unlimited).Request(data)
		require.NoError(t, err, name)
		dict := looked(p)
		took := profiletest.Live() - before
		runtime.KeepAlive(dict)
		if pointsBytes(p) > 1<<20 && p.Dictionary().StringTable().Len() > 0 { // the garbage collector runs for each sample
			live := walked(p)
			require.Positive(t, live, name)
			took = max(took, live-before)
		}
		require.False(t, fits(data, took-1<<20), "%s: %d bytes take %d", name, len(data), took)
		t.Logf("%-20s %8d bytes take %9d", name, len(data), took)
		runtime.KeepAlive(p)
	}
}

// counted is a request with a profile of CPU samples that has one, with these fields.
func counted(fields []byte) []byte {
	var dictionary []byte
	for _, text := range []string{"", "samples", "count", "cpu", "nanoseconds"} {
		dictionary = append(dictionary, profiletest.In([]byte(text), 5)...)
	}
	dictionary = append(dictionary, profiletest.In(nil, 7)...) // a stack
	kind := func(field protowire.Number, name, unit uint64) []byte {
		return profiletest.In(append(profiletest.Number(1, name), profiletest.Number(2, unit)...), field)
	}
	profile := append(kind(1, 1, 2), kind(5, 3, 4)...)
	profile = append(profile, profiletest.Number(6, profiletest.PeriodNs)...)
	profile = append(profile, profiletest.In(fields, 2)...)
	return append(profiletest.In(profile, 1, 2, 2), profiletest.In(dictionary, 2)...)
}

func TestWeightOfJSON(t *testing.T) {
	const n = 50_000
	for name, line := range map[string]string{
		"samples": `{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{}` + strings.Repeat(",{}", n) + `]}]}]}]}`,
		"points": `{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},
			"periodType":{"typeStrindex":3,"unitStrindex":4},"period":"50000000","samples":[{"values":[0` + strings.Repeat(",0", 8*n) + `]}]}]}]}],
			"dictionary":{"stringTable":["","samples","count","cpu","nanoseconds"],"stackTable":[{}]}}`,
	} {
		before := profiletest.Live()
		p, err := NewDecoder(unlimited).Line([]byte(line))
		require.NoError(t, err, name)
		took := profiletest.Live() - before
		if name == "points" {
			took = walked(p) - before
		}
		require.Greater(t, took, int64(2<<20), "%s: it does take memory", name)
		_, err = NewDecoder(took).Line([]byte(line))
		var tooLarge *weight.TooLargeError
		require.ErrorAs(t, err, &tooLarge, name)
		runtime.KeepAlive(p)
	}
}

// TestTooLargeIsNotDecoded: what is refused has not taken the memory.
func TestTooLargeIsNotDecoded(t *testing.T) {
	const n = 50_000
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	d := NewDecoder(1 << 20)
	line := []byte(`{"resourceProfiles":[{}` + strings.Repeat(",{}", n) + `]}`)
	request := profiletest.Empty(n, 1)
	for name, decode := range map[string]func() (pprofile.Profiles, error){
		"request": func() (pprofile.Profiles, error) { return d.Request(request) },
		"line":    func() (pprofile.Profiles, error) { return d.Line(line) },
	} {
		before := allocated()
		_, err := decode()
		took := allocated() - before
		var tooLarge *weight.TooLargeError
		require.ErrorAs(t, err, &tooLarge, name)
		require.Less(t, took, uint64(1<<20), name)
	}
}

func TestNestedRequest(t *testing.T) {
	d := NewDecoder(unlimited)
	_, err := d.Request(profiletest.Nested(150))
	require.NoError(t, err)
	_, err = d.Request(profiletest.Nested(1000))
	require.ErrorIs(t, err, weight.ErrNested)
}
