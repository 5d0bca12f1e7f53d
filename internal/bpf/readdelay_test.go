//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadDelay(t *testing.T) {
	for hz, want := range map[int]time.Duration{
		MinSamplesPerSecond: 200 * time.Millisecond,
		19:                  200 * time.Millisecond,
		25:                  160 * time.Millisecond,
		97:                  100 * time.Millisecond,
		MaxSamplesPerSecond: 100 * time.Millisecond,
	} {
		require.Equal(t, want, (&Config{SamplesPerSecond: hz}).readDelay(), hz)
		require.Equal(t, time.Second, (&Config{SamplesPerSecond: hz, ReadDelay: time.Second}).readDelay())
	}
}

func TestSlowReadDelay(t *testing.T) {
	for hz, want := range map[int]time.Duration{
		MinSamplesPerSecond: 400 * time.Millisecond,
		120:                 400 * time.Millisecond,
		121:                 100 * time.Millisecond,
		MaxSamplesPerSecond: 100 * time.Millisecond,
	} {
		require.Equal(t, want, (&Config{SamplesPerSecond: hz}).slowReadDelay(), hz)
		require.Equal(t, time.Second, (&Config{SamplesPerSecond: hz, ReadDelay: time.Second}).slowReadDelay())
	}
	require.Equal(t, 400*time.Millisecond, (&Config{SamplesPerSecond: 20, MaxReadDelay: 400 * time.Millisecond}).slowReadDelay())
	require.Equal(t, 200*time.Millisecond, (&Config{SamplesPerSecond: 20, MaxReadDelay: 399 * time.Millisecond}).slowReadDelay())
	for _, most := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		c := Config{SamplesPerSecond: 20, MaxReadDelay: most}
		require.Equal(t, most, c.readDelay())
		require.Equal(t, most, c.slowReadDelay())
	}
}

// Samples wait for long, but not in a hurry.
func TestHurry(t *testing.T) {
	// A quarter of the ring buffer, which wakes the reader in any case, takes more than the test.
	s := newSampler(t, Config{SamplesPerSecond: 20, RingBufferBytes: 16 << 20, slowDelay: time.Hour})
	require.NoError(t, s.Start())
	cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	var read atomic.Int64
	ended := make(chan error, 1)
	go func() {
		var r Record
		for {
			if err := s.Read(&r); errors.Is(err, ErrClosed) {
				ended <- nil
				return
			} else if err == nil {
				read.Add(1)
			} else if !errors.Is(err, ErrIdle) {
				ended <- err
				return
			}
		}
	}()
	waits := func() bool { // for more than a hurry's interval, while there is something
		before := read.Load()
		time.Sleep(20 * quickReadDelay)
		return read.Load() == before && s.UnreadBytes() > 0
	}
	require.Eventually(t, waits, time.Minute, time.Millisecond, "after the first tick")
	before := read.Load()
	s.Hurry()
	require.Eventually(t, func() bool { return read.Load() > before }, time.Minute, time.Millisecond)
	require.NoError(t, s.Close())
	require.NoError(t, <-ended)
}
