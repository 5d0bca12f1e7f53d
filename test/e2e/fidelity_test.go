//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	fidelityRate    = 10_000 // the highest there is
	fidelitySamples = 1_000_000
	fidelityTime    = 6 * time.Minute

	// A thread has no labels only in the instants between two sets, and before it was found.
	fidelityMaxUnlabelled = 0.001
)

// TestFidelity: threads that swap label sets thousands of times a second, each
// set with a checksum over itself, its number and the thread. No sample may
// carry a set that is torn, stale, mixed or another thread's.
func TestFidelity(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	variants := map[int64]string{}
	for _, v := range []string{"writer-v0-exe", "writer-v1-lib", "writer-v1-dlopengd", "writer-ctx-dlopen"} {
		w := testutil.Start(t, v, "fidelity", "--threads", "1", "--seconds", fmt.Sprint(int(fidelityTime.Seconds())+30))
		variants[int64(w.PID)] = v
	}
	type tally struct{ checked, unlabelled int }
	tallies := map[string]*tally{}
	for _, v := range variants {
		tallies[v] = &tally{}
	}
	var checked, mismatches atomic.Int64
	done := make(chan struct{})
	warm := 0
	out := &sink{t: t, visit: func(b flatBatch) {
		if warm++; warm <= 2 {
			return // the writers may have been found in the course of it
		}
		for i := range b.hits {
			h := &b.hits[i]
			variant, ok := variants[h.pid]
			if !ok {
				if h.attrs[prefix+"check"] != "" {
					mismatches.Add(1)
					assert.Fail(t, "foreign labels", "%s (PID %d) has the labels of a writer", h.executable, h.pid)
				}
				continue
			}
			n := tallies[variant]
			tid, err := strconv.ParseUint(h.attrs["thread.id"], 10, 32)
			require.NoError(t, err)
			switch {
			case variant == "writer-ctx-dlopen" && h.link != (link{}):
				_, err = testutil.VerifyFidelityIDs(uint32(tid), h.link.traceID, h.link.spanID)
			case variant != "writer-ctx-dlopen" && h.attrs[prefix+"check"] != "":
				_, err = testutil.VerifyFidelity(uint32(tid), h.attrs[prefix+"check"], h.attrs[prefix+"pad"])
			default:
				n.unlabelled++
				continue
			}
			if err != nil {
				mismatches.Add(1)
				assert.NoError(t, err, variant)
			}
			n.checked++
			if checked.Add(1) == fidelitySamples {
				close(done)
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = fidelityRate
		c.ReportInterval = time.Second
		c.RingBufferBytes = 32 << 20
		c.Symbolize = customlabelsreceiver.SymbolizeNone
	})
	select {
	case <-done:
	case <-time.After(fidelityTime):
	}
	r.stop()
	for v, n := range tallies {
		fmt.Printf("%-20s %9d samples checked, %6d without labels\n", v, n.checked, n.unlabelled)
		require.NotZero(t, n.checked, v)
		require.LessOrEqual(t, float64(n.unlabelled), fidelityMaxUnlabelled*float64(n.checked), v)
	}
	fmt.Printf("%d samples checked, %d mismatches\n", checked.Load(), mismatches.Load())
	require.Zero(t, mismatches.Load())
	require.GreaterOrEqual(t, checked.Load(), int64(fidelitySamples))
}
