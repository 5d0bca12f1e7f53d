package profile

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A process that is not wanted leaves no trace: no name, label, link, address or time
// of it is in the output, which is the one of the others alone.
func TestLeftOut(t *testing.T) {
	wanted := []Sample{
		{Process: 1, TimeUnixNano: 1500, UserFrames: []uint64{0x10}, Set: setA, Link: linkA},
		{Process: 1, TimeUnixNano: 1600, UserFrames: []uint64{0x10}, Set: setA, Link: linkA},
	}
	secret := labels.NewSet(false, labels.Label{Key: "secret-key", Value: "secret-value", Source: record.ABIV1})
	unwanted := []Sample{
		{Process: 2, TimeUnixNano: 1, UserFrames: []uint64{0x5ec0e7}, Set: secret, Link: linkB, TID: 77, Comm: []byte("secret-comm")},
		{Process: 2, TimeUnixNano: 9000, UserFrames: []uint64{0x5ec0e7, 0x10}, Set: secret},
		{Process: 2, TimeUnixNano: 9001, UserFrames: []uint64{0x5ec0e7, 0x10}, Set: secret},
	}
	build := func(r *resolver, samples ...Sample) (pprofile.Profiles, BuildStats) {
		b := NewBuilder(Options{ThreadID: true, ThreadName: true, TraceAttributes: true})
		for i := range samples {
			b.Add(&samples[i])
		}
		return buildOne(b, r, 1000, 2000)
	}
	r := &resolver{unwanted: 2}
	got, stats := build(r, unwanted[0], wanted[0], unwanted[1], wanted[1], unwanted[2])
	require.EqualValues(t, 2, stats.Samples)
	require.EqualValues(t, 3, stats.LeftOut)
	require.Equal(t, 1, stats.Resources)
	for _, asked := range r.asked {
		require.EqualValues(t, 1, asked.process)
	}
	alone, _ := build(&resolver{}, wanted...)
	require.Equal(t, marshalWithoutID(t, alone), marshalWithoutID(t, got))

	all, _ := build(&resolver{}, unwanted[0], wanted[0])
	require.True(t, bytes.Contains(marshalWithoutID(t, all), []byte("secret-value")), "it would be there")

	none, stats := build(&resolver{unwanted: 2}, unwanted...)
	require.Zero(t, none.ResourceProfiles().Len())
	require.Zero(t, stats.Samples)
	require.EqualValues(t, 3, stats.LeftOut)
}

func marshalWithoutID(t *testing.T, p pprofile.Profiles) []byte {
	t.Helper()
	for _, rp := range p.ResourceProfiles().All() {
		theProfile(t, rp).SetProfileID(pprofile.ProfileID{})
	}
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(p)
	require.NoError(t, err)
	return wire
}
