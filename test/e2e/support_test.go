//go:build linux && (amd64 || arm64)

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// In guests it is known what the kernel lacks: "1" or "0".
const (
	olderKernelEnv   = "CUSTOM_LABELS_OLDER_KERNEL"   // what the newer programs use, and the tree of mappings
	contextEventsEnv = "CUSTOM_LABELS_CONTEXT_EVENTS" // if "0": that BPF may trace functions
)

// TestKernelLacks: the receiver starts, and says once, in one sentence each, what it does without because the kernel lacks
// something.
func TestKernelLacks(t *testing.T) {
	testutil.RequireBPF(t)
	core, logs := observer.New(zap.InfoLevel)
	r := newReceiver(t, &sink{t: t}, zap.New(core), func(*customlabelsreceiver.Config) {})
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, r.Shutdown(t.Context()))
	told := func(begins string) (times int) {
		for _, entry := range logs.All() {
			times += count(strings.HasPrefix(entry.Message, begins))
		}
		return times
	}
	for _, entry := range logs.All() {
		require.NotContains(t, entry.Message, "\n")
	}
	older, known := os.LookupEnv(olderKernelEnv)
	for _, begins := range []string{"the kernel lacks ", "the kernel does not tell BPF what a process maps (Linux 6.1): "} {
		if known {
			require.Equal(t, count(older == "1"), told(begins), begins)
		}
		require.LessOrEqual(t, told(begins), 1, begins)
	}
	if events, known := os.LookupEnv(contextEventsEnv); known {
		require.Equal(t, count(events == "0"), told(logNoEvents))
	}
}
