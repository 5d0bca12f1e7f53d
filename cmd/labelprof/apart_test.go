// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A count is one of CPU samples only where the period is CPU time.
func TestCountOfSomethingElse(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"another type": func(f *fixture) { f.profile.PeriodType().SetTypeStrindex(f.text("wall")) },
		"another unit": func(f *fixture) { f.profile.PeriodType().SetUnitStrindex(f.text("cycles")) },
	} {
		f := newFixture().process(7, "writer")
		change(f)
		f.sample(3, []string{"f"}, "tenant", "acme")
		s := &sink{table: newTable([]string{"tenant"})}
		s.consume(f.profiles)
		require.EqualValues(t, 1, s.ignored, name)
		require.Zero(t, s.table.hits, name)
	}
}

// The id that the linker wrote is preferred to a hash of the file, whichever comes first.
func TestBuildIDs(t *testing.T) {
	const gnu, hash = buildIDKeyPrefix + "gnu", buildIDKeyPrefix + "htlhash"
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{gnu, hash}, gnu},
		{[]string{hash, gnu}, gnu},
		{[]string{hash}, hash},
		{[]string{buildIDKeyPrefix + "go", hash, hash + "2"}, hash},
		{nil, ""},
	} {
		f := newFixture()
		indices := pcommon.NewInt32Slice()
		for _, key := range c.keys {
			indices.Append(f.attribute(key, func(v pcommon.Value) { v.SetStr(key) }))
		}
		require.Equal(t, c.want, newDictionary(f.dict).buildID(indices), c.keys)
	}
}

// Rows are told apart by where a value ends, whatever its bytes are.
func TestValuesOfARow(t *testing.T) {
	f := newFixture().process(7, "writer")
	f.sample(1, []string{"f"}, "tenant", "a\x01b", "route", "c")
	f.sample(2, []string{"f"}, "tenant", "a", "route", "b\x01c")
	s := &sink{table: newTable([]string{"tenant", "route"})}
	s.consume(f.profiles)
	hits := map[string]int64{}
	for _, r := range s.table.rows {
		hits[r.values[0].text+"|"+r.values[1].text] = r.hits
	}
	require.Equal(t, map[string]int64{"a\x01b|c": 1, "a|b\x01c": 2}, hits)
}

// Two lines of a function at one address are two places.
func TestPprofLines(t *testing.T) {
	s := &sink{pprof: newPprofProfile(maxPprofBytes)}
	f := newFixture().process(7, "writer")
	first := f.sample(1, []string{"parse"})
	second := f.sample(1, nil)
	place := f.dict.StackTable().At(int(first.StackIndex())).LocationIndices().At(0)
	copied := f.dict.LocationTable().AppendEmpty()
	f.dict.LocationTable().At(int(place)).CopyTo(copied)
	copied.Lines().At(0).SetLine(12)
	f.dict.StackTable().At(int(second.StackIndex())).LocationIndices().Append(int32(f.dict.LocationTable().Len() - 1))
	s.consume(f.profiles)
	p := written(t, s.pprof)
	require.Len(t, p.Function, 1)
	require.Len(t, p.Location, 2)
	require.Len(t, p.Sample, 2)
	require.Zero(t, p.Sample[0].Location[0].Line[0].Line)
	require.EqualValues(t, 12, p.Sample[1].Location[0].Line[0].Line)
}

// A profile covers the time of all batches, whichever comes first.
func TestPprofSpan(t *testing.T) {
	for _, starts := range [][]int64{{3e9, 1e9}, {1e9, 3e9}, {1e9, 3e9, 2e9}} {
		s := &sink{pprof: newPprofProfile(maxPprofBytes)}
		for _, start := range starts {
			f := newFixture().process(7, "writer")
			f.profile.SetTime(pcommon.Timestamp(start))
			f.sample(1, []string{"f"})
			s.consume(f.profiles)
		}
		p := written(t, s.pprof)
		require.EqualValues(t, 1e9, p.TimeNanos, starts)
		require.EqualValues(t, 3e9+5e9-1e9, p.DurationNanos, starts)
	}
}

// failingOnce stands for a disk that has room again after a write that it cut.
type failingOnce struct {
	bytes.Buffer
	failed bool
}

func (f *failingOnce) Write(b []byte) (int, error) {
	if !f.failed {
		f.failed = true
		return 0, errors.New("no room")
	}
	return f.Buffer.Write(b)
}

// Nothing follows a batch that is cut off: its readers could not find where the next
// begins. What is not written is counted.
func TestOTLPFileEndsWhereItFails(t *testing.T) {
	var file failingOnce
	s := &sink{otlp: &file}
	for range 3 {
		s.consume(tenants(t).profiles)
	}
	require.EqualValues(t, 3, s.unwritten)
	require.Zero(t, file.Len())
	require.Contains(t, s.notes(), "3 batches not in the OTLP file")

	file = failingOnce{failed: true}
	s = &sink{otlp: &file, otlpBytes: maxOTLPBytes + 1}
	s.consume(pprofile.NewProfiles())
	require.EqualValues(t, 1, s.unwritten)
	require.Zero(t, file.Len())
}
