//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newSampler(t *testing.T, config Config) *Sampler {
	t.Helper()
	s, err := New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestSmoke(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Follow())
	n := 0
	require.NoError(t, s.Scan(func(ev ProcessEvent) {
		if ev.PID == uint32(os.Getpid()) {
			n++
		}
	}))
	require.Equal(t, 1, n)
	require.NoError(t, s.Start())
	end := time.Now().Add(time.Second)
	var r Record
	records, mine, frames := 0, 0, 0
	stop := make(chan bool)
	go func() {
		for x := 0; ; x++ {
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for drained := false; !drained; {
		err := s.Read(&r)
		switch {
		case err == nil:
			records++
			if r.PID == uint32(os.Getpid()) {
				mine++
				frames += len(r.UserFrames)
			}
		case errors.Is(err, ErrDrained):
			drained = true
		case errors.Is(err, ErrIdle):
		default:
			t.Fatal(err)
		}
		if !end.IsZero() && time.Now().After(end) {
			end = time.Time{}
			close(stop)
			require.NoError(t, s.Stop())
			require.NoError(t, s.Drain())
		}
	}
	c, err := s.Counters()
	require.NoError(t, err)
	t.Logf("%+v records %d mine %d frames %d", c, records, mine, frames)
	require.Equal(t, c.Hits, c.Submitted+c.FilteredIdle+c.DroppedInternal+c.DroppedRingFull)
	require.EqualValues(t, c.Submitted, records)
}
