//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// TestRestart starts and shuts down receivers in one process, one after the other
// and two at once. Each hands over all that it sampled, and leaves nothing behind.
func TestRestart(t *testing.T) {
	testutil.RequireBPF(t)
	w := testutil.Start(t, "writer-v1-exe", "spin", "--labels", "1", "--seconds", "300")

	shutdownWithoutStart(t)
	runReceivers(t, w, size(997, 997, 97)) // whatever the process opens once for all is open now
	before := settledKernelObjectsOf(t, os.Getpid(), kernelObjects.counts)
	require.Empty(t, before.programs)
	require.Empty(t, before.maps)
	fmt.Printf("idle: %v\n", before)
	for _, rates := range size([][]int{{97}, {997}, {97, 499}, {19, 10_000}, {499}}, [][]int{{97}, {19, 10_000}}, [][]int{{97, 199}}) {
		during, received := runReceivers(t, w, rates...)
		fmt.Printf("running at %v Hz: %v; received all %v samples emitted\n", rates, during, received)
		after := requireSame(t, os.Getpid(), before.counts())
		require.Equal(t, before.files, after.files)
		during.requireGone(t)
	}
	restartOne(t, w)
	requireSame(t, os.Getpid(), before.counts())
}

// runReceivers runs a receiver for each rate, all at once, until each has brought
// labelled samples of the writer.
func runReceivers(t *testing.T, w *testutil.Writer, rates ...int) (during kernelObjects, received []int) {
	t.Helper()
	var receivers []*running
	var outs []*sink
	var labelled []*atomic.Int64
	for _, rate := range rates {
		n := &atomic.Int64{}
		out := &sink{t: t, visit: countLabelled(w, n)}
		receivers = append(receivers, startReceiver(t, out, func(c *customlabelsreceiver.Config) {
			c.SamplesPerSecond = rate
			c.ReportInterval = 200 * time.Millisecond
		}))
		outs, labelled = append(outs, out), append(labelled, n)
	}
	for _, n := range labelled {
		require.Eventually(t, func() bool { return n.Load() >= 10 }, 2*time.Minute, 20*time.Millisecond)
	}
	during = kernelObjectsOf(t, os.Getpid())
	require.NotEmpty(t, during.programs)
	for i, r := range receivers {
		r.stop()
		_, hits := outs[i].received()
		requireFlushed(t, r.account(), hits)
		received = append(received, hits)
		r.stop() // again: nothing
	}
	return during, received
}

func countLabelled(w *testutil.Writer, n *atomic.Int64) func(flatBatch) {
	return func(b flatBatch) {
		for i := range b.hits {
			if h := &b.hits[i]; h.pid == int64(w.PID) && h.attrs[prefix+"label_00"] != "" {
				n.Add(1)
			}
		}
	}
}

// requireFlushed checks that all that was emitted has been received, and what became of the rest.
func requireFlushed(t *testing.T, account map[string]int64, received int) {
	t.Helper()
	require.EqualValues(t, received, account["emitted"])
	requireClosed(t, account)
}

// restartOne starts one and the same receiver again after its shutdown.
func restartOne(t *testing.T, w *testutil.Writer) {
	t.Helper()
	var labelled atomic.Int64
	out := &sink{t: t, visit: countLabelled(w, &labelled)}
	r := newReceiver(t, out, nil, func(c *customlabelsreceiver.Config) { c.ReportInterval = 200 * time.Millisecond })
	for range size(3, 2, 2) {
		labelled.Store(0)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.Error(t, r.Start(t.Context(), componenttest.NewNopHost()), "it runs already")
		require.Eventually(t, func() bool { return labelled.Load() > 0 }, 2*time.Minute, 20*time.Millisecond)
		require.NoError(t, r.Shutdown(t.Context()))
		batches, _ := out.received()
		time.Sleep(300 * time.Millisecond)
		later, _ := out.received()
		require.Equal(t, batches, later, "a batch after the shutdown")
	}
}

func shutdownWithoutStart(t *testing.T) {
	t.Helper()
	r := newReceiver(t, &sink{t: t}, nil, func(*customlabelsreceiver.Config) {})
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, r.Shutdown(t.Context()))
}

// newReceiver makes a receiver that is not started and needs no privileges yet.
func newReceiver(t *testing.T, out *sink, log *zap.Logger, change func(*customlabelsreceiver.Config)) xreceiver.Profiles {
	t.Helper()
	factory := customlabelsreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig().(*customlabelsreceiver.Config)
	change(cfg)
	set := receivertest.NewNopSettings(factory.Type())
	if log != nil {
		set.Logger = log
	}
	r, err := factory.(xreceiver.Factory).CreateProfiles(context.Background(), set, cfg, out)
	require.NoError(t, err)
	return r
}

const (
	unprivilegedEnv = "CUSTOM_LABELS_TEST_UNPRIVILEGED"
	nobody          = 65534
)

// TestNoPrivileges runs itself again as a user who may do nothing: Start says in one
// sentence what is missing, or with error_mode ignore goes without.
func TestNoPrivileges(t *testing.T) {
	if os.Getenv(unprivilegedEnv) != "" {
		startWithoutPrivileges(t)
		return
	}
	testutil.RequireRoot(t)
	// The link works where the path of the test binary is closed to others.
	cmd := exec.Command("/proc/self/exe", "-test.run", "^TestNoPrivileges$", "-test.v")
	cmd.Env = append(os.Environ(), unprivilegedEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestNoPrivileges")
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "as nobody: ") {
			fmt.Print(line)
		}
	}
}

// statusHost keeps the last status that was reported to it.
type statusHost struct {
	component.Host
	last *componentstatus.Event
}

func (h *statusHost) Report(e *componentstatus.Event) { h.last = e }

func startWithoutPrivileges(t *testing.T) {
	require.Equal(t, nobody, os.Geteuid())
	r := newReceiver(t, &sink{t: t}, nil, func(*customlabelsreceiver.Config) {})
	err := r.Start(t.Context(), componenttest.NewNopHost())
	require.Error(t, err)
	fmt.Printf("as nobody: %v\n", err)
	require.Contains(t, err.Error(), "CAP_BPF")
	require.Contains(t, err.Error(), "CAP_PERFMON")
	require.NotContains(t, err.Error(), "\n")
	require.NoError(t, r.Shutdown(t.Context()))

	core, logs := observer.New(zap.ErrorLevel)
	idle := newReceiver(t, &sink{t: t}, zap.New(core), func(c *customlabelsreceiver.Config) {
		c.ErrorMode = customlabelsreceiver.ErrorModeIgnore
	})
	host := &statusHost{Host: componenttest.NewNopHost()}
	require.NoError(t, idle.Start(t.Context(), host))
	require.Equal(t, 1, logs.Len())
	require.Contains(t, fmt.Sprint(logs.All()[0].ContextMap()["error"]), "CAP_BPF")
	require.NotNil(t, host.last)
	require.Equal(t, componentstatus.StatusPermanentError, host.last.Status())
	require.NoError(t, idle.Shutdown(t.Context()))
	fmt.Println("as nobody: with error_mode ignore it starts and stays idle")
}
