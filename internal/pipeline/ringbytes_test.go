package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRingBytes(t *testing.T) {
	atMost := func(mib int) func(*Options) {
		return func(o *Options) { o.SamplesPerSecond, o.Limits.BPFMapBytes = 10000, mib<<20 }
	}
	for name, tc := range map[string]struct {
		cpus int
		set  func(*Options)
		want int
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
		"as given":                   {cpus: 1024, set: func(o *Options) { o.Ring.Bytes = 1 << 16 }, want: 1 << 16},
		"within the limit of maps":   {cpus: 16, set: atMost(81), want: 8 << 20},
		"beside off-CPU":             {cpus: 16, set: func(o *Options) { atMost(81)(o); o.OffCPU.Threshold = 1 }, want: 4 << 20},
		"beside what each CPU has":   {cpus: 1024, set: atMost(128), want: 16 << 20},
		"as small as it can be made": {cpus: 16, set: func(o *Options) { atMost(16)(o); o.Unwind.MaxBytes = 8<<20 - 1<<16 }, want: 1 << 16},
	} {
		t.Run(name, func(t *testing.T) {
			o := Defaults()
			if tc.set != nil {
				tc.set(&o)
			}
			require.LessOrEqual(t, o.MapBytes().Sum(), o.Limits.BPFMapBytes)
			require.Equal(t, tc.want, o.ringBytes(tc.cpus))
		})
	}
}
