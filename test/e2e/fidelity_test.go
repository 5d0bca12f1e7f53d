//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	fidelityRate    = size(10_000, 10_000, 499) // natively the highest there is
	fidelitySamples = size(1_000_000, 50_000, 1000)
	fidelityTime    = size(6*time.Minute, 2*time.Minute, time.Minute)
)

// fidelityMaxUnlabelled bounds the share of samples without labels. A writer replaces one
// set by the next with one store, or (v0, thread context) with a few instructions in which
// it has none. An emulator takes interrupts between blocks of instructions, so that some
// instants are seen more often than others.
func fidelityMaxUnlabelled(t *testing.T) float64 {
	return testutil.Threshold(t, "share without labels", 0.001, 0.01)
}

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
	type tally struct {
		checked, unlabelled int
		publishes           map[uint32]bool // threads; the main thread does not
	}
	tallies := map[string]*tally{}
	for _, v := range variants {
		tallies[v] = &tally{publishes: map[uint32]bool{}}
	}
	var checked, mismatches atomic.Int64
	done := make(chan struct{})
	var over sync.Once
	warm := 0
	out := &sink{t: t, visit: func(b flatBatch) {
		if warm++; warm <= 2 {
			return // the writers may have been found in the course of it
		}
		for i := range b.hits {
			h := &b.hits[i]
			variant, ours := variants[h.pid]
			tid64, err := strconv.ParseUint(h.attrs["thread.id"], 10, 32)
			require.NoError(t, err)
			tid := uint32(tid64)
			check, labelled := h.attrs[prefix+"check"]
			_, attributes := h.attrs["check"] // of a thread context
			switch {
			case labelled: // of whatever process: a label names its thread
				_, err = testutil.VerifyFidelity(tid, check, h.attrs[prefix+"pad"])
			case attributes || ours && h.link != (link{}):
				err = verifyContext(tid, h)
			case ours && tallies[variant].publishes[tid]:
				tallies[variant].unlabelled++
				continue
			default:
				continue
			}
			if err != nil {
				mismatches.Add(1)
				assert.NoError(t, err, "%s (PID %d)", h.executable, h.pid)
			}
			if !ours {
				continue
			}
			tallies[variant].checked++
			tallies[variant].publishes[tid] = true
			checked.Add(1)
		}
		enough := checked.Load() >= int64(fidelitySamples)
		for _, n := range tallies { // a slow machine finds one label source after the other
			enough = enough && n.checked >= fidelitySamples/10
		}
		if enough {
			over.Do(func() { close(done) })
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		manySets(c)
		c.SamplesPerSecond = fidelityRate
		c.ReportInterval = size(time.Second, 500*time.Millisecond, 500*time.Millisecond)
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
		require.GreaterOrEqual(t, n.checked, fidelitySamples/10, v)
		require.LessOrEqual(t, float64(n.unlabelled), fidelityMaxUnlabelled(t)*float64(n.checked), v)
	}
	fmt.Printf("%d samples checked, %d mismatches\n", checked.Load(), mismatches.Load())
	require.Zero(t, mismatches.Load())
	require.GreaterOrEqual(t, checked.Load(), int64(fidelitySamples))
	testutil.ReportLabelAssertions(t.Name(), int(checked.Load()))
}

// verifyContext checks the ids and the attributes of a thread context, each for
// itself and against the other.
func verifyContext(tid uint32, h *hit) error {
	byIDs, err := testutil.VerifyFidelityIDs(tid, h.link.traceID, h.link.spanID)
	if err != nil {
		return err
	}
	byAttributes, err := testutil.VerifyFidelity(tid, h.attrs["check"], h.attrs["pad"])
	if err == nil && byIDs != byAttributes {
		err = fmt.Errorf("ids of set %d with the attributes of set %d", byIDs, byAttributes)
	}
	return err
}
