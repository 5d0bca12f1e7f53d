//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// TestKernelLacks: the receiver starts, and says once, in one sentence each, what it does
// without because the kernel lacks something. The output tells which objects were loaded.
func TestKernelLacks(t *testing.T) {
	testutil.RequireBPF(t)
	core, logs := observer.New(zap.InfoLevel)
	r := newReceiver(t, &sink{t: t}, zap.New(core), func(*customlabelsreceiver.Config) {})
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, r.Shutdown(t.Context()))
	told := map[string]int{}
	for _, entry := range logs.All() {
		require.NotContains(t, entry.Message, "\n")
		if strings.Contains(entry.Message, "(Linux ") {
			told[entry.Message]++
		}
		if strings.HasPrefix(entry.Message, "the kernel lacks ") {
			fmt.Printf("older objects: %s\n", entry.Message)
		}
	}
	for message, times := range told {
		require.Equal(t, 1, times, message)
	}
}
