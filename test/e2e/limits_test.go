//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	limitsPatience = 5 * time.Minute
	limitsMemory   = 64 << 20
	// limitsSlack is what the test itself and the runtime may take besides.
	limitsSlack = 48 << 20
)

// TestLimits has a receiver reach the limits of the whole receiver, one after the other: what
// it does is counted, and the labels of what it emits are right.
func TestLimits(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	w := testutil.Start(t, "writer-v1-lib", "fidelity", "--threads", "2", "--seconds", "600")
	limit := func(name string, reach func(*testing.T, *checkedSink)) {
		t.Run(name, func(t *testing.T) { reach(t, newCheckedSink(t, int64(w.PID))) })
	}
	limit("memory", limitMemory)
	limit("BPF maps", limitMaps)
	limit("background CPU", limitCPU)
}

// A checkedSink verifies every label set of a process, which names its thread and has a
// checksum.
type checkedSink struct {
	sink
	checked atomic.Int64
}

func newCheckedSink(t *testing.T, pid int64) *checkedSink {
	s := &checkedSink{}
	s.sink = sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			h := &b.hits[i]
			check, labelled := h.attrs[prefix+"check"]
			if !labelled || h.pid != pid {
				continue
			}
			tid, err := strconv.ParseUint(h.attrs["thread.id"], 10, 32)
			assert.NoError(t, err)
			_, err = testutil.VerifyFidelity(uint32(tid), check, h.attrs[prefix+"pad"])
			assert.NoError(t, err)
			s.checked.Add(1)
		}
	}}
	return s
}

// limitMemory holds up the next consumer, so that samples pile up.
func limitMemory(t *testing.T, out *checkedSink) {
	held := make(chan struct{})
	out.refuse = func() error { <-held; return nil }
	before := anonymousBytes(t)
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 10_000
		c.ReportInterval = time.Second
		c.MaxMemoryBytes = limitsMemory
	}, func(o *pipeline.Options) { o.Batches.MaxBytes, o.Symbols.MaxBytes = 8<<20, 4<<20 })
	released := false
	release := func() {
		if !released {
			released = true
			close(held)
		}
	}
	defer release()
	highest, grown := 0.0, int64(0)
	require.Eventually(t, func() bool {
		highest = max(highest, r.limitUsed("max_memory_bytes"))
		grown = max(grown, anonymousBytes(t)-before)
		return r.metric("dropped_samples", "reason")["no_memory"] > 0
	}, limitsPatience, 20*time.Millisecond)
	fmt.Printf("memory: %.0f %% of %d MiB when samples were dropped; the process had %d MiB more than before; actions %v\n",
		100*highest, limitsMemory>>20, grown>>20, r.metric("limit_actions", "action"))
	require.LessOrEqual(t, highest, 1.1)
	require.LessOrEqual(t, grown, int64(limitsMemory+limitsSlack))
	require.NotZero(t, r.metric("limit_actions", "action")["batch_early"])

	dropped := r.metric("dropped_samples", "reason")["no_memory"]
	release()
	checked := out.checked.Load()
	require.Eventually(t, func() bool {
		return out.checked.Load() > checked+1000 && r.limitUsed("max_memory_bytes") < 0.75
	}, limitsPatience, 20*time.Millisecond, "it goes on when there is room")
	r.stop()
	account := r.account()
	require.GreaterOrEqual(t, account["dropped_no_memory"], dropped)
	require.Zero(t, account["pending"], "%v", account)
	_, received := out.received()
	require.EqualValues(t, received, account["emitted"])
}

// limitMaps gives the maps the least room that there can be.
func limitMaps(t *testing.T, out *checkedSink) {
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = time.Second
		c.MaxBpfMapBytes = 16 << 20
	})
	require.Eventually(t, func() bool { return out.checked.Load() > 1000 }, limitsPatience, 20*time.Millisecond)
	used := r.limitUsed("max_bpf_map_bytes")
	fmt.Printf("BPF maps: %.0f %% of 16 MiB; unwind rows %v\n", 100*used, r.metric("unwind_used"))
	require.Less(t, used, 1.0)
	require.NotZero(t, used)
	r.stop()
	require.Zero(t, r.account()["pending"])
}

// limitCPU gives the background a fiftieth of a CPU.
func limitCPU(t *testing.T, out *checkedSink) {
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = time.Second
		c.MaxBackgroundCPU = 0.02
	})
	require.Eventually(t, func() bool {
		return out.checked.Load() > 1000 && r.metric("limit_actions", "action")["work_delayed"] > 0
	}, limitsPatience, 20*time.Millisecond, "labels come, and other work waits")
	fmt.Printf("background CPU: %v; %d samples checked\n", r.metric("limit_actions", "action"), out.checked.Load())
	r.stop()
	require.Zero(t, r.account()["pending"])
}

// limitUsed is how near the receiver says that it is to a limit.
func (r *running) limitUsed(limit string) float64 {
	m, err := r.telemetry.GetMetric("otelcol_receiver_custom_labels_limit_used")
	require.NoError(r.t, err)
	for _, p := range m.Data.(metricdata.Gauge[float64]).DataPoints {
		if v, _ := p.Attributes.Value(attribute.Key("limit")); v.AsString() == limit {
			return p.Value
		}
	}
	return 0
}

// anonymousBytes is the memory that this process has written.
func anonymousBytes(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "RssAnon:")
	require.True(t, ok)
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kib << 10
}
