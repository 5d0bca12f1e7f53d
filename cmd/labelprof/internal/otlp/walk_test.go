// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// walkedThrough returns what Walk finds, and how many samples it hands over.
func walkedThrough(f *profiletest.Batch) (found sample.Batch, samples int64) {
	found = Walk(f.Profiles, func(*sample.Sample) { samples++ })
	return found, samples
}

// A count is one of CPU samples only where the period is CPU time.
func TestCountOfSomethingElse(t *testing.T) {
	for name, change := range map[string]func(*profiletest.Batch){
		"another type": func(f *profiletest.Batch) { f.Profile.PeriodType().SetTypeStrindex(f.Text("wall")) },
		"another unit": func(f *profiletest.Batch) { f.Profile.PeriodType().SetUnitStrindex(f.Text("cycles")) },
	} {
		f := profiletest.New().Process(7, "writer")
		change(f)
		f.Sample(3, []string{"f"}, "tenant", "acme")
		found, samples := walkedThrough(f)
		require.EqualValues(t, 1, found.OtherProfiles, name)
		require.Zero(t, samples, name)
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
		f := profiletest.New()
		indices := pcommon.NewInt32Slice()
		for _, key := range c.keys {
			indices.Append(f.Attribute(key, func(v pcommon.Value) { v.SetStr(key) }))
		}
		require.Equal(t, c.want, newDictionary(f.Dict).buildID(indices), c.keys)
	}
}

func TestEmptyDictionary(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	f.Sample(1, []string{"f"}, "tenant", "acme")
	f.Dict.StringTable().FromRaw(nil)
	found, samples := walkedThrough(f)
	require.Zero(t, samples)
	require.EqualValues(t, 1, found.OtherProfiles)
}

// TestWorkIsBounded: samples that name one stack again and again end.
func TestWorkIsBounded(t *testing.T) {
	f := profiletest.New().Process(7, "writer")
	stack := make([]string, 1)
	f.Sample(1, stack)
	frames := f.Dict.StackTable().At(1).LocationIndices()
	for frames.Len() < sample.MaxFrames {
		frames.Append(frames.At(0))
	}
	const most = sample.MaxWork/sample.MaxFrames + 2
	for range 2 * most {
		s := f.Profile.Samples().AppendEmpty()
		s.SetStackIndex(1)
		s.Values().Append(1)
	}
	b, samples := walkedThrough(f)
	require.LessOrEqual(t, samples, int64(most))
	require.Positive(t, samples)
	require.EqualValues(t, 2*most+1, samples+b.Malformed)

	frames.Append(frames.At(0))
	_, samples = walkedThrough(f)
	require.Zero(t, samples, "a stack that nobody has")
}

// TestLongLists: a list of attributes is not walked again for all that refers to it.
func TestLongLists(t *testing.T) {
	const n, times = 1_000_000, 50_000 // minutes, walked each time
	for name, bomb := range profiletest.LookupBombs(n, times) {
		var b sample.Batch
		var samples int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			b, samples = walkedThrough(bomb)
		}()
		select {
		case <-done:
			require.EqualValues(t, bomb.Profile.Samples().Len(), samples+b.Malformed, name)
			require.Equal(t, name == "a mapping of many locations", samples > 0, name)
		case <-time.After(time.Minute):
			t.Fatalf("%s: it does not end", name)
		}
	}
}
