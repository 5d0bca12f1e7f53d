//go:build linux && (amd64 || arm64)

package e2e

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// TestAccounting overloads every bound at once: a small ring buffer at the
// highest rate, a consumer that refuses some batches and holds up others. At
// the end each hit of the sampling program is accounted for, to the last one.
func TestAccounting(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	for range runtime.NumCPU() {
		testutil.Start(t, "writer-v1-lib", "fidelity", "--threads", "1", "--seconds", "600")
	}
	var calls, refused atomic.Int64
	out := &sink{t: t, refuse: func() error {
		switch n := calls.Add(1); {
		case n%5 == 2:
			refused.Add(1)
			return errors.New("not this one")
		case n%5 == 4:
			time.Sleep(time.Second) // meanwhile batches pile up
		}
		return nil
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 10_000
		c.ReportInterval = 100 * time.Millisecond
	}, func(o *pipeline.Options) {
		o.Ring = pipeline.RingOptions{Bytes: 64 << 10, UserShare: 1} // all writers are root's
		o.Batches.MaxPending = 1
	})
	time.Sleep(size(10*time.Second, 0, 0))
	bounds := []string{"ring_full", "refused", "pending_full"}
	assert.Eventually(t, func() bool {
		dropped := r.metric("dropped_samples", "reason")
		return calls.Load() > 4 && !slices.ContainsFunc(bounds, func(reason string) bool { return dropped[reason] == 0 })
	}, 5*time.Minute, 100*time.Millisecond, "the bounds are not all reached")

	// While it runs, what is not accounted for yet is pending, and that is never negative.
	require.GreaterOrEqual(t, r.metric("pending_samples")[""], int64(0))
	r.stop()

	batches, received := out.received()
	account := r.account()
	var filtered, dropped int64
	for name, n := range account {
		if strings.HasPrefix(name, "filtered_") {
			filtered += n
		}
		if strings.HasPrefix(name, "dropped_") {
			dropped += n
		}
	}
	hits, emitted := account["hits"], account["emitted"]
	fmt.Printf("hits %d = emitted %d + filtered %d + dropped %d; difference %d\n", hits, emitted, filtered, dropped, hits-emitted-filtered-dropped)
	fmt.Printf("%v\n", account)
	fmt.Printf("the consumer accepted %d samples in %d batches and refused %d batches\n", received, batches, refused.Load())
	require.Equal(t, hits, emitted+filtered+dropped)
	require.EqualValues(t, received, emitted)
	require.Zero(t, account["pending"])
	for _, reason := range bounds {
		require.NotZero(t, account["dropped_"+reason], "the test did not reach the bound %s", reason)
	}
}
