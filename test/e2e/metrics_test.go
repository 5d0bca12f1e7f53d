//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	metricCPU    = "custom_labels.cpu.time"
	metricOffCPU = "custom_labels.off_cpu.time"

	metricsUser   = 20011 // publishes more labels and has more processes than it may
	metricsQuiet  = 20012 // does not
	metricsSeries = 40    // of a user
	metricsRate   = 997
	metricsPeriod = int64(time.Second) / metricsRate
	metricsExpiry = 2 * time.Second
)

// TestMetrics: profiles and metrics of one receiver say the same, to the sample.
func TestMetrics(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	t.Run("agree", testMetricsAgree)
	t.Run("alone", testMetricsAlone)
	t.Run("collector", testMetricsCollector)
	t.Run("collector alone", testMetricsCollectorAlone)
}

// startSignals runs a receiver in a pipeline of metrics, and of profiles unless out is nil.
func startSignals(
	t *testing.T, out *sink, metrics *metricSink, change func(*customlabelsreceiver.Config), derived func(*pipeline.Options),
) *running {
	t.Helper()
	factory := customlabelsreceiver.NewFactoryWith(derived).(xreceiver.Factory)
	cfg := factory.CreateDefaultConfig().(*customlabelsreceiver.Config)
	change(cfg)
	require.NoError(t, confmap.Validate(cfg))
	r := &running{t: t, telemetry: componenttest.NewTelemetry()}
	set := receivertest.NewNopSettings(factory.Type())
	set.TelemetrySettings = r.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zapcore.InfoLevel)
	set.Logger, r.logs = zap.New(core), logs
	made, err := factory.CreateMetrics(context.Background(), set, cfg, metrics)
	require.NoError(t, err)
	r.receiver = made
	if out != nil {
		profiles, err := factory.CreateProfiles(context.Background(), set, cfg, out)
		require.NoError(t, err)
		require.NoError(t, profiles.Start(context.Background(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, profiles.Shutdown(context.Background())) })
	}
	require.NoError(t, r.receiver.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(r.stop)
	return r
}

// truthOfProfiles adds up what profiles have, in the terms of the metrics.
type truthOfProfiles struct {
	mu      sync.Mutex
	hits    int64
	ns      map[string]int64 // by metric
	process map[[2]string]int64
	series  map[seriesName]int64
}

// seriesName is what a label set of a process is in the metrics.
type seriesName struct{ metric, pid, state, tenant, route, check, truncated, overflow string }

func (p *truthOfProfiles) visit(b flatBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range b.hits {
		h := &b.hits[i]
		metric, ns := metricCPU, metricsPeriod
		if b.isOffCPU {
			metric, ns = metricOffCPU, int64(h.offCPU)
		} else {
			p.hits++
		}
		pid := strconv.FormatInt(h.pid, 10)
		p.ns[metric] += ns
		p.process[[2]string{metric, pid}] += ns
		p.series[seriesName{
			metric, pid, h.attrs["custom_labels.thread_state"],
			label(h, "tenant"), label(h, "route"), label(h, "check"),
			h.attrs["custom_labels.truncated"], h.attrs["custom_labels.overflow"],
		}] += ns
	}
}

// label returns that of a thread context or a custom one.
func label(h *hit, key string) string {
	if v, ok := h.attrs[key]; ok {
		return v
	}
	return h.attrs[prefix+key]
}

func nameOf(s *series) seriesName {
	return seriesName{
		s.metric, s.resource["process.pid"], s.attrs["custom_labels.thread_state"],
		s.attrs["tenant"], s.attrs["route"], s.attrs["check"],
		s.attrs["custom_labels.truncated"], s.attrs["custom_labels.overflow"],
	}
}

// testMetricsAgree has a user churn labels and processes until both overflow, beside a
// user who does not. Each sum is what the profiles have; together they have each sample.
func testMetricsAgree(t *testing.T) {
	dir := testutil.BuildWriters(t)
	quiet := []*testutil.Writer{
		runAs(t, filepath.Join(dir, "writer-v1-exe"), metricsQuiet, "shares", "--threads", "1", "--seconds", "86400"),
		runAs(t, filepath.Join(dir, "writer-ctx-exe"), metricsQuiet, "shares", "--threads", "1", "--seconds", "86400"),
	}
	churn := runAs(t, filepath.Join(dir, "writer-v1-exe"), metricsUser, "fidelity", "--threads", "1", "--seconds", "86400")
	truth := &truthOfProfiles{ns: map[string]int64{}, process: map[[2]string]int64{}, series: map[seriesName]int64{}}
	out, metrics := &sink{t: t, visit: truth.visit}, newMetricSink(t)
	r := startSignals(t, out, metrics, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = metricsRate
		c.ReportInterval = 500 * time.Millisecond
		*c.OffCPU.GetOrInsertDefault() = customlabelsreceiver.OffCPU{Threshold: 1}
		c.Unwind, c.Symbolize = customlabelsreceiver.UnwindFramePointers, customlabelsreceiver.SymbolizeNone
		c.Metrics.LabelKeys = []string{"tenant", "route", "check"}
		c.Metrics.Interval = time.Second
		c.MaxMemoryBytes = slowConsumerMemory
		c.Targets.Exclude = []customlabelsreceiver.TargetSelector{{PID: os.Getpid()}}
	}, func(o *pipeline.Options) {
		o.Ring.UserShare, o.Metrics.MaxUserSeries = 1, metricsSeries
		slowConsumer(o)
	})
	lost := func(what string) int64 {
		return r.metric("metric_overflow", "process.real_user.id", "lost")[fmt.Sprintf("%d/%s", metricsUser, what)]
	}
	require.Eventually(t, func() bool { return lost("labels") > 0 }, 3*time.Minute, 50*time.Millisecond, "too many labels")
	// As many at a time as do not have room, however slowly they come.
	processes := exec.Command("/bin/sh", "-c", `while :; do
		n=0
		while [ $n -lt $1 ]; do
			(i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 2) &
			n=$((n+1))
		done
		wait
	done`, "sh", strconv.Itoa(4*metricsSeries))
	processes.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: metricsUser}}
	require.NoError(t, processes.Start())
	require.NoError(t, syscall.Setpriority(syscall.PRIO_PROCESS, processes.Process.Pid, -10)) // also on a busy machine
	t.Cleanup(func() {
		_ = processes.Process.Kill()
		_ = processes.Wait() // it was killed
	})
	ofChurn := func(s *series) bool {
		return s.resource["process.pid"] == strconv.Itoa(churn.PID) && s.attrs["custom_labels.overflow"] != ""
	}
	// Other users may overflow too: on a busy machine root's processes do.
	ofUser := func(s *series) bool {
		return s.resource["process.pid"] == "" && s.resource["process.real_user.id"] == strconv.Itoa(metricsUser) &&
			s.attrs["custom_labels.overflow"] != ""
	}
	var lacking string
	defer func() {
		if lacking != "" {
			t.Log("too few:", lacking)
		}
	}()
	require.Eventually(t, func() bool {
		lacking = ""
		need := func(what string, there, most int64) {
			if there <= most {
				lacking += fmt.Sprintf(" %s %d", what, there)
			}
		}
		need("processes that lost their series", lost("process"), 0)
		need("overflow of the labels", metrics.sum(metricCPU, ofChurn), 0)
		need("overflow of the user", metrics.sum(metricCPU, ofUser), 0)
		for _, w := range quiet {
			need("samples of a quiet process", metrics.sum(metricCPU, func(s *series) bool {
				return s.resource["process.pid"] == strconv.Itoa(w.PID) && s.attrs["tenant"] != ""
			}), 200*metricsPeriod)
		}
		return lacking == ""
	}, 3*time.Minute, 100*time.Millisecond)
	emitted := r.metric("emitted_samples")[""]
	sampled := r.metric("metric_samples")[""]
	require.LessOrEqual(t, emitted, sampled)
	r.stop()

	account, switches := r.account(), r.switchAccount()
	made, _ := metrics.count(everySeries)
	fmt.Printf("%d series; a user may have %d of processes with labels, and twice as many in all; in %d collections\n", made, metricsSeries, metrics.collections)
	fmt.Printf("on the CPU:  %d samples in the profiles, %.3f in the metrics\n", truth.hits, float64(metrics.sum(metricCPU, everySeries))/float64(metricsPeriod))
	fmt.Printf("off the CPU: %d switches, %d ns in the profiles, %d ns in the metrics\n", switches["emitted"], truth.ns[metricOffCPU], metrics.sum(metricOffCPU, everySeries))
	require.NotZero(t, truth.hits)
	require.Zero(t, account["dropped_pending_full"]+account["dropped_refused"])
	require.Equal(t, account["emitted"], account["metric_samples"])
	require.Equal(t, account["emitted"], truth.hits)
	for _, metric := range []string{metricCPU, metricOffCPU} {
		require.NotZero(t, truth.ns[metric])
		require.Equal(t, truth.ns[metric], metrics.sum(metric, everySeries), metric)
		for _, w := range quiet {
			pid := strconv.Itoa(w.PID)
			require.Equal(t, truth.process[[2]string{metric, pid}], metrics.sum(metric, func(s *series) bool { return s.resource["process.pid"] == pid }), "%s of %s", metric, pid)
		}
	}
	within := map[string]bool{}
	for _, w := range quiet {
		within[strconv.Itoa(w.PID)] = true
	}
	exact, overflowing := metrics.compare(t, truth, within)
	fmt.Printf("%d series with labels have just what the profiles have, %d are for overflow\n", exact, overflowing)
	require.GreaterOrEqual(t, exact, metricsSeries/3)
	require.GreaterOrEqual(t, overflowing, 2)
	for _, w := range quiet {
		pid := strconv.Itoa(w.PID)
		tenants := map[string]bool{}
		for name := range truth.series {
			if name.pid == pid {
				tenants[name.tenant] = true
			}
		}
		require.GreaterOrEqual(t, len(tenants), 4, "of %s", pid)
		require.Zero(t, metrics.sum(metricCPU, func(s *series) bool {
			return s.resource["process.pid"] == pid && s.attrs["custom_labels.overflow"] != ""
		}))
	}
}

// compare holds each series that is not for overflow against the profiles: a series has all
// samples of its labels. But where a user is past his budget, a process whose resource
// changes (by an exec, for one) may have room for a series before and none afterwards.
func (s *metricSink) compare(t *testing.T, truth *truthOfProfiles, within map[string]bool) (exact, overflowing int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	byName := map[seriesName]int64{}
	for _, one := range s.series {
		if one.attrs["custom_labels.overflow"] != "" {
			overflowing++
			continue
		}
		byName[nameOf(one)] += one.total() // the resource of a process may change
	}
	for name, ns := range byName {
		want, known := truth.series[name]
		require.True(t, known, "%+v is in no profile", name)
		if !within[name.pid] && name.check == "" {
			require.LessOrEqual(t, ns, want, "%+v", name)
			continue
		}
		require.Equal(t, want, ns, "%+v", name)
		exact++
	}
	return exact, overflowing
}

// testMetricsAlone has two receivers in one process without any consumer of profiles.
func testMetricsAlone(t *testing.T) {
	w := testutil.Start(t, "writer-v1-lib", "shares", "--threads", "1", "--seconds", "86400")
	brief := testutil.Start(t, "writer-v0-exe", "spin", "--threads", "1", "--labels", "1", "--seconds", "86400")
	pid := strconv.Itoa(w.PID)
	ofBrief := func(s *series) bool { return s.resource["process.pid"] == strconv.Itoa(brief.PID) }
	var sinks []*metricSink
	var receivers []*running
	for range 2 {
		metrics := newMetricSink(t)
		receivers = append(receivers, startSignals(t, nil, metrics, func(c *customlabelsreceiver.Config) {
			c.SamplesPerSecond = metricsRate
			c.ReportInterval = 500 * time.Millisecond
			c.Metrics.Interval = time.Second
			c.Metrics.LabelKeys = []string{"tenant"}
			c.MaxMemoryBytes = slowConsumerMemory
		}, func(o *pipeline.Options) {
			slowConsumer(o)
			o.Metrics.Expiry = metricsExpiry
			o.Ring.Bytes, o.Ring.UserShare = 32<<20, 1 // nothing is to be dropped, however busy the machine
		}))
		sinks = append(sinks, metrics)
	}
	require.Eventually(t, func() bool { all, _ := sinks[0].count(ofBrief); return all > 0 }, 3*time.Minute, 50*time.Millisecond)
	brief.Stop()
	require.Eventually(t, func() bool { _, last := sinks[0].count(ofBrief); return last == 0 }, 3*time.Minute, 50*time.Millisecond,
		"a process that has ended has its series for ever")
	for i, metrics := range sinks {
		labelled := func(s *series) bool { return s.resource["process.pid"] == pid && s.attrs["tenant"] != "" }
		require.Eventually(t, func() bool {
			all, _ := metrics.count(labelled)
			return all == 4 && metrics.sum(metricCPU, labelled) > 100*metricsPeriod
		}, 3*time.Minute, 50*time.Millisecond)
		receivers[i].stop()
		account := receivers[i].account()
		fmt.Printf("metrics alone: %v\n", account)
		require.Equal(t, account["emitted"]*metricsPeriod, metrics.sum(metricCPU, everySeries))
		require.Equal(t, account["emitted"], account["metric_samples"])
		require.Equal(t, account["hits"], account["emitted"]+account["filtered_idle"])
		require.Zero(t, metrics.sum(metricOffCPU, everySeries))
	}
}

// testMetricsCollector runs the collector that ocb built, with a pipeline of each signal.
func testMetricsCollector(t *testing.T) {
	testutil.RequireRoot(t)
	w := testutil.Start(t, "writer-v1-lib", "shares", "--threads", "1", "--seconds", "86400")
	pid := strconv.Itoa(w.PID)
	truth := &truthOfProfiles{ns: map[string]int64{}, process: map[[2]string]int64{}, series: map[seriesName]int64{}}
	metrics := newMetricSink(t)
	address := startEndpoints(t, &sink{t: t, visit: truth.visit}, metrics)
	c := startCollector(t, address, fmt.Sprintf(`
receivers::custom_labels: {samples_per_second: %d, report_interval: 500ms, metrics: {label_keys: [tenant, route], interval: 1s}}
service::pipelines::metrics: {receivers: [custom_labels], exporters: [otlp_grpc]}
`, metricsRate))
	labelled := func(s *series) bool { return s.resource["process.pid"] == pid && s.attrs["tenant"] != "" }
	c.await("labelled series", func() bool { return metrics.sum(metricCPU, labelled) > 100*metricsPeriod })
	c.stop()
	accounts := c.accounts()
	require.Len(t, accounts, 1, "one sampler for both signals")
	fmt.Printf("the collector: %d samples in the profiles, %d in the metrics\n", truth.hits, metrics.sum(metricCPU, everySeries)/metricsPeriod)
	require.EqualValues(t, truth.hits, accounts[0].Emitted)
	require.Equal(t, truth.hits*metricsPeriod, metrics.sum(metricCPU, everySeries))
	require.Equal(t, truth.process[[2]string{metricCPU, pid}], metrics.sum(metricCPU, func(s *series) bool { return s.resource["process.pid"] == pid }))
}

// testMetricsCollectorAlone has no pipeline of profiles, and so no feature gate.
func testMetricsCollectorAlone(t *testing.T) {
	w := testutil.Start(t, "writer-v1-lib", "shares", "--threads", "1", "--seconds", "86400")
	metrics := newMetricSink(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
receivers:
  custom_labels: {samples_per_second: %d, report_interval: 500ms, metrics: {label_keys: [tenant], interval: 1s}}
exporters:
  otlp_grpc: {endpoint: "%s", tls: {insecure: true}, timeout: 30s}
service:
  pipelines:
    metrics: {receivers: [custom_labels], exporters: [otlp_grpc]}
  telemetry: {metrics: {level: none}}
`, metricsRate, startEndpoints(t, &sink{t: t}, metrics)), 0o600))
	c := startChild(t, nil, collectorProgram, "--config", config)
	c.awaitLine(collectorReady)
	c.await("series of all tenants", func() bool {
		all, _ := metrics.count(func(s *series) bool {
			return s.resource["process.pid"] == strconv.Itoa(w.PID) && s.attrs["tenant"] != ""
		})
		return all == 4
	})
	c.stop()
	fmt.Printf("the collector without profiles: %d samples in %d collections\n", metrics.sum(metricCPU, everySeries)/metricsPeriod, metrics.collections)
}
