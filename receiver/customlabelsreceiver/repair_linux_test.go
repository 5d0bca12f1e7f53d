//go:build amd64 || arm64

package customlabelsreceiver

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// TestEventLoss has the events of processes find no room while many begin: when the reader
// goes on, all of them get known with the labels that they have. None is sampled.
func TestEventLoss(t *testing.T) {
	testutil.RequireBPF(t)
	path := filepath.Join(testutil.BuildWriters(t), "writer-v1-lib")
	cfg := createDefaultConfig().(*Config)
	cfg.SamplesPerSecond = 1
	cfg.ReportInterval = 100 * time.Millisecond
	made, err := newPipelineWith(
		cfg, receivertest.NewNopSettings(metadata.Type), consumers{profiles: consumertest.NewNop()}, func(error) {}, os.Getpagesize(),
	)
	require.NoError(t, err)
	p := made.(*samplingPipeline)
	var stalled atomic.Bool
	p.handle = func(ev process.Event) {
		for stalled.Load() {
			time.Sleep(time.Millisecond)
		}
		p.table.HandleEvent(ev)
	}
	require.NoError(t, p.start(t.Context()))
	defer func() { require.NoError(t, p.shutdown(context.Background())) }()

	stalled.Store(true)
	begun := map[uint32]bool{}
	for range 40 {
		// Without threads, it only waits.
		cmd := exec.Command(path, "storm", "--threads", "1", "--seconds", "300")
		require.NoError(t, cmd.Start())
		begun[uint32(cmd.Process.Pid)] = true
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}()
	}
	lost := p.counts.bpfCounters(p.sampler).EventsDropped
	require.NotZero(t, lost, "no event was lost")
	stalled.Store(false)
	began := time.Now()
	require.Eventually(t, func() bool { return labelledAs(t, p, begun) == len(begun) }, time.Minute, 20*time.Millisecond)
	t.Logf("%d events were lost; all processes were known %v later", lost, time.Since(began).Round(time.Millisecond))
}

// labelledAs counts the processes, of those with some PIDs, whose label sources are
// published under the identity that they have now.
func labelledAs(t *testing.T, p *samplingPipeline, pids map[uint32]bool) (n int) {
	t.Helper()
	require.NoError(t, p.sampler.Scan(func(ev bpf.ProcessEvent) {
		p.publisher.mu.Lock()
		defer p.publisher.mu.Unlock()
		if _, ok := p.publisher.sources[process.ID(ev.Process)]; ok && pids[ev.PID] {
			n++
		}
	}))
	return n
}
