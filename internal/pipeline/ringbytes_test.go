//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
)

func TestRingBytes(t *testing.T) {
	atMost := func(mib int) func(*Options) {
		return func(o *Options) { o.SamplesPerSecond, o.Limits.BPFMapBytes = 10000, mib<<20 }
	}
	for name, tc := range map[string]struct {
		cpus, possible int // possible: 0: as many
		set            func(*Options)
		want           int
	}{
		"the least":                  {cpus: 2, want: 1 << 20},
		"by CPUs":                    {cpus: 100, want: 4 << 20},
		"by rate":                    {cpus: 2, set: func(o *Options) { o.SamplesPerSecond = 997 }, want: 4 << 20},
		"a power of two":             {cpus: 64, set: func(o *Options) { o.SamplesPerSecond = 64 }, want: 8 << 20},
		"the most":                   {cpus: 512, set: atMost(192), want: 64 << 20},
		"the most by default":        {cpus: 512, set: func(o *Options) { o.SamplesPerSecond, o.Unwind.MaxBytes = 10000, 32<<20 }, want: 32 << 20},
		"more of more":               {cpus: 2, set: func(o *Options) { o.Limits.BPFMapBytes = 1 << 30 }, want: 8 << 20},
		"the most there is":          {cpus: 4096, set: atMost(8 << 10), want: 1 << 30},
		"less of less":               {cpus: 2, set: func(o *Options) { o.Limits.BPFMapBytes, o.Unwind.MaxBytes = 16<<20, 4<<20 }, want: 128 << 10},
		"of those that are there":    {cpus: 2, possible: 1024, want: 1 << 20},
		"beside those that may come": {cpus: 2, possible: 1024, set: func(o *Options) { o.SamplesPerSecond, o.Unwind.MaxBytes = 10000, 88<<20 }, want: 8 << 20},
		"as given":                   {cpus: 1024, set: func(o *Options) { o.Ring.Bytes = 1 << 16 }, want: 1 << 16},
		"within the limit of maps":   {cpus: 16, set: atMost(82), want: 8 << 20},
		"beside off-CPU":             {cpus: 16, set: func(o *Options) { atMost(82)(o); o.OffCPU.Threshold = 1 }, want: 2 << 20},
		"beside what each CPU has":   {cpus: 512, set: atMost(128), want: 8 << 20},
		"as small as it can be made": {cpus: 16, set: func(o *Options) { atMost(16)(o); o.Unwind.MaxBytes = 8<<20 - 1<<16 }, want: 1 << 16},
	} {
		t.Run(name, func(t *testing.T) {
			o := Defaults()
			if tc.set != nil {
				tc.set(&o)
			}
			require.LessOrEqual(t, o.mapBytes().sum()+bpf.MinRingBufferBytes, o.Limits.BPFMapBytes)
			require.Equal(t, tc.want, o.ringBytes(bpf.CPUs{Possible: max(tc.possible, tc.cpus), Online: tc.cpus, Room: tc.cpus}))
		})
	}
}

// With the defaults a host has room for all maps up to a thousand CPUs, unwind rows give way; of
// CPUs that may come, most of what they take does not count.
func TestMapBytesOfHosts(t *testing.T) {
	for on, want := range map[bpf.CPUs]struct{ unwind, ring int }{
		{Possible: 2, Online: 2, Room: 2}:          {64 << 20, 1 << 20},
		{Possible: 128, Online: 128, Room: 128}:    {64 << 20, 8 << 20},
		{Possible: 128, Online: 2, Room: 16}:       {64 << 20, 1 << 20},
		{Possible: 512, Online: 512, Room: 512}:    {54 << 20, 16 << 20},
		{Possible: 1024, Online: 4, Room: 16}:      {64 << 20, 1 << 20},
		{Possible: 1024, Online: 1024, Room: 1024}: {18 << 20, 4 << 20},
	} {
		o := Defaults()
		o.fit(on)
		require.Equal(t, want.unwind, o.Unwind.MaxBytes, "%+v", on)
		require.Equal(t, want.ring, o.ringBytes(on), "%+v", on)
		require.LessOrEqual(t, o.ringBytes(on)+o.mapBytes().sum()+o.cpuBytes(on), o.Limits.BPFMapBytes, "%+v", on)
	}
}

// Whatever the limit of maps, its parts fit, with off-CPU profiles too.
func TestMapBytesFit(t *testing.T) {
	on := bpf.CPUs{Possible: 2, Online: 2, Room: 2}
	for mib := 16; mib <= 8<<10; mib++ {
		o := Defaults()
		o.Limits.BPFMapBytes = mib << 20
		o.OffCPU.Threshold, o.OffCPU.RingBytes = 1, o.Limits.BPFMapBytes/32
		o.Unwind.MaxBytes = o.Limits.BPFMapBytes
		o.fit(on)
		require.LessOrEqual(t, o.ringBytes(on)+o.mapBytes().sum()+o.cpuBytes(on), o.Limits.BPFMapBytes)
	}
}
