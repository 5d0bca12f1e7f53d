//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// TestExcluded: programs that are excluded, and have just begun or ended when their samples
// are handed over. None is emitted, though nothing is included by name.
func TestExcluded(t *testing.T) {
	testutil.RequireBPF(t)
	short, err := exec.LookPath("true")
	require.NoError(t, err)
	short, err = filepath.EvalSymlinks(short)
	require.NoError(t, err)
	var mu sync.Mutex
	emitted := 0
	out := &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for i := range b.hits {
			if b.hits[i].resource["process.executable.path"] == short {
				emitted++
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 4999
		c.ReportInterval = 100 * time.Millisecond
		c.Targets.Exclude = []customlabelsreceiver.TargetSelector{{Executable: short}}
	})
	stop := startStorm(short)
	require.Eventually(t, func() bool {
		return r.metric("filtered_samples", "reason")["unknown_process"] > 100 && r.metric("emitted_samples")[""] > 100
	}, 3*time.Minute, 50*time.Millisecond)
	stop()
	r.stop()
	account := r.account()
	fmt.Printf("emitted %d, %d of them of what is excluded; filtered: target %d, unknown_process %d\n",
		account["emitted"], emitted, account["filtered_target"], account["filtered_unknown_process"])
	require.Zero(t, emitted)
	requireClosed(t, account)
}
