package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRingBytes(t *testing.T) {
	atMost := func(mib int) func(*Config) {
		return func(c *Config) { c.SamplesPerSecond, c.MaxBPFMapBytes = 10000, mib<<20 }
	}
	for name, tc := range map[string]struct {
		cpus int
		set  func(*Config)
		want int
	}{
		"the least":                  {cpus: 2, want: 1 << 20},
		"by CPUs":                    {cpus: 100, want: 4 << 20},
		"by rate":                    {cpus: 2, set: func(c *Config) { c.SamplesPerSecond = 997 }, want: 4 << 20},
		"a power of two":             {cpus: 64, set: func(c *Config) { c.SamplesPerSecond = 64 }, want: 8 << 20},
		"the most":                   {cpus: 512, set: atMost(256), want: 32 << 20},
		"as configured":              {cpus: 1024, set: func(c *Config) { c.RingBufferBytes = 1 << 16 }, want: 1 << 16},
		"within the limit of maps":   {cpus: 16, set: atMost(81), want: 8 << 20},
		"beside absences":            {cpus: 16, set: func(c *Config) { atMost(81)(c); c.OffCPUThreshold = 1 }, want: 4 << 20},
		"beside what each CPU has":   {cpus: 1024, set: atMost(128), want: 16 << 20},
		"as small as it can be made": {cpus: 16, set: func(c *Config) { atMost(16)(c); c.MaxUnwindBytes = 8<<20 - 1<<16 }, want: 1 << 16},
	} {
		t.Run(name, func(t *testing.T) {
			c := createDefaultConfig().(*Config)
			if tc.set != nil {
				tc.set(c)
			}
			require.NoError(t, c.Validate())
			require.Equal(t, tc.want, c.ringBytes(tc.cpus))
		})
	}
}
