package profile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func offCPUOptions() Options {
	o := everything()
	o.OffCPU = &OffCPU{Threshold: 0.25, Minimum: 3 * time.Millisecond}
	return o
}

// An off-CPU profile has a value with each timestamp, and says what was left out.
func TestOffCPUProfile(t *testing.T) {
	b := NewBuilder(offCPUOptions())
	for i, state := range []record.ThreadState{record.ThreadSleeping, record.ThreadRunnable, record.ThreadSleeping, record.NumThreadStates} {
		s := sample()
		s.State = state
		s.TimeUnixNano += uint64(i)
		s.OffCPUNs = int64(1000 * (i + 1))
		b.Add(&s)
	}
	p, stats := buildOne(b, &resolver{}, 1000, 2000)
	require.EqualValues(t, 4, stats.Samples)
	flat := flatten(t, p) // which checks the conformance
	require.Len(t, flat, 3)
	require.Equal(t, "sleeping", flat[0].attrs["custom_labels.thread_state"])
	require.Equal(t, "runnable", flat[1].attrs["custom_labels.thread_state"])
	require.Equal(t, "other", flat[2].attrs["custom_labels.thread_state"])

	profile, text := theProfile(t, p.ResourceProfiles().At(0)), p.Dictionary().StringTable()
	require.Equal(t, "off_cpu", text.At(int(profile.SampleType().TypeStrindex())))
	require.Equal(t, "nanoseconds", text.At(int(profile.SampleType().UnitStrindex())))
	require.Zero(t, profile.Period())
	require.Zero(t, profile.PeriodType().TypeStrindex())
	require.Equal(t, []int64{1000, 3000}, profile.Samples().At(0).Values().AsRaw())
	require.Equal(t, []uint64{1500, 1502}, profile.Samples().At(0).TimestampsUnixNano().AsRaw())
	require.Equal(t, []int64{2000}, profile.Samples().At(1).Values().AsRaw())

	attrs, units := map[string]any{}, map[string]string{}
	for _, i := range profile.AttributeIndices().All() {
		kv := p.Dictionary().AttributeTable().At(int(i))
		units[text.At(int(kv.KeyStrindex()))] = text.At(int(kv.UnitStrindex()))
		attrs[text.At(int(kv.KeyStrindex()))] = kv.Value().AsRaw()
	}
	require.Equal(t, map[string]any{"custom_labels.off_cpu.threshold": 0.25, "custom_labels.off_cpu.minimum_ns": int64(3_000_000)}, attrs)
	require.Equal(t, map[string]string{"custom_labels.off_cpu.threshold": "", "custom_labels.off_cpu.minimum_ns": "ns"}, units)

	b.Reset()
	s := sample()
	s.State, s.OffCPUNs = record.ThreadStopped, 7
	b.Add(&s)
	p, _ = buildOne(b, &resolver{}, 1000, 2000)
	require.Equal(t, []int64{7}, theProfile(t, p.ResourceProfiles().At(0)).Samples().At(0).Values().AsRaw())
}
