//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A CPU that goes and comes back is sampled again, whether or not anyone looked in between.
func TestCPUHotplug(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.Need(t, testutil.SwitchCPUs)
	const cpu = 1
	path := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
	set := func(online string) { require.NoError(t, os.WriteFile(path, []byte(online), 0)) }
	t.Cleanup(func() { set("1") })
	program := buildTarget(t)
	for _, noticed := range []bool{true, false} {
		s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
		require.NoError(t, s.Follow())
		require.NoError(t, s.Start())
		sampled := func() {
			tgt := startTarget(t, program, "labels-1")
			only := unix.CPUSet{}
			only.Set(cpu)
			require.NoError(t, unix.SchedSetaffinity(int(tgt.pid), &only))
			readUntil(t, s, func(r *Record) bool { return r.PID == tgt.pid && r.CPU == cpu })
		}
		sampled()
		set("0")
		if noticed {
			require.NoError(t, s.UpdateCPUs())
			require.NotContains(t, s.clocks, cpu)
			require.NotContains(t, s.sideband.rings, cpu)
		}
		set("1")
		for range 2 { // what was away is told from the second look on
			time.Sleep(10 * time.Millisecond)
			require.NoError(t, s.UpdateCPUs())
		}
		require.Contains(t, s.sideband.rings, cpu)
		drainNow(t, s)
		sampled()
		require.NoError(t, s.Close())
	}
}

// drainNow reads what is in the ring buffer.
func drainNow(t *testing.T, s *Sampler) {
	t.Helper()
	require.NoError(t, s.Drain())
	var r Record
	for err := error(nil); err != ErrDrained; { //nolint:errorlint // never wrapped
		err = s.Read(&r)
	}
}
