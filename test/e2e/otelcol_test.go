//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	collectorProgram = "../../build/otelcol-customlabels"
	labelprofProgram = "../../bin/labelprof"
	quickstartConfig = "../../examples/quickstart.yaml"

	collectorReady = "Everything is ready"
)

// A collector is the built one, running with examples/quickstart.yaml and changes to it.
type collector struct {
	*child
	changes string // the file with them
}

// startCollector returns when the collector is ready. The changes are YAML that is
// merged over the example.
func startCollector(t *testing.T, address, changes string) *collector {
	t.Helper()
	return startCollectorOf(t, collectorProgram, address, changes)
}

// startCollectorOf does so with another build of it.
func startCollectorOf(t *testing.T, program, address, changes string) *collector {
	t.Helper()
	c := &collector{changes: filepath.Join(t.TempDir(), "changes.yaml")}
	c.write(t, changes)
	c.child = startChild(t, []string{"OTLP_ENDPOINT=" + address}, program, "--config", quickstartConfig,
		"--config", "yaml:"+alwaysChanges, "--config", c.changes, "--feature-gates=service.profilesSupport")
	c.awaitLine(collectorReady)
	return c
}

// alwaysChanges are merged over the example, before a test's own: the log is JSON, and for
// busy machines the exporter waits long, because what it sends again would be counted twice,
// and the receiver drops no batch. They are a file of their own, because of a key and one
// within it in the same file, the collector takes either, as it happens.
const alwaysChanges = "{service::telemetry::logs::encoding: json, exporters::otlp_grpc::timeout: 30s, " +
	"receivers::custom_labels::max_memory_bytes: 4294967296}"

// write replaces the changes.
func (c *collector) write(t *testing.T, changes string) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.changes, []byte(changes), 0o600))
}

// reload makes the collector read its configuration again and waits until it runs with it.
func (c *collector) reload(changes string) {
	c.t.Helper()
	c.write(c.t, changes)
	before := strings.Count(c.stderr.String(), collectorReady)
	c.signal(syscall.SIGHUP)
	c.await("the reload", func() bool { return strings.Count(c.stderr.String(), collectorReady) > before })
}

// An account is what a receiver says at its end became of every hit.
type account struct {
	Receiver     string `json:"otelcol.component.id"`
	Hits         int64  `json:"hits"`
	Emitted      int64  `json:"emitted"`
	FilteredIdle int64  `json:"filtered_idle"`
	// Of programs that targets exclude, and of those not judged yet.
	FilteredTarget  int64 `json:"filtered_target"`
	FilteredUnknown int64 `json:"filtered_unknown_process"`
	RingFull        int64 `json:"dropped_ring_full"`
	UserShare       int64 `json:"dropped_user_share"`
	Internal        int64 `json:"dropped_internal"`
	Malformed       int64 `json:"dropped_malformed"`
	PendingFull     int64 `json:"dropped_pending_full"`
	Refused         int64 `json:"dropped_refused"`
	Pending         int64 `json:"pending"`
}

func (a account) dropped() int64 { return a.late() + a.Internal + a.Malformed + a.Refused }

// late are those that found no room: a receiver that gets no CPU time for seconds has some.
func (a account) late() int64 { return a.RingFull + a.UserShare + a.PendingFull }

// accounts returns those of all receivers that have ended, in the order of the log.
func (c *collector) accounts() []account {
	c.t.Helper()
	var all []account
	for line := range strings.Lines(c.stderr.String()) {
		if !strings.Contains(line, `"Sampling has ended."`) {
			continue
		}
		fields := map[string]any{}
		require.NoError(c.t, json.Unmarshal([]byte(line), &fields))
		require.Contains(c.t, fields, "emitted")
		var a account
		require.NoError(c.t, json.Unmarshal([]byte(line), &a))
		all = append(all, a)
	}
	return all
}

// requireNothingLost checks that accounts close on what a sink has received. Nothing is dropped
// but by a receiver that is late.
func requireNothingLost(t *testing.T, accounts []account, received int) {
	t.Helper()
	var emitted int64
	for _, a := range accounts {
		require.NotZero(t, a.Emitted, "%+v", a)
		require.Equal(t, a.late(), a.dropped(), "%+v", a)
		require.Less(t, a.late(), a.Emitted, "%+v", a)
		require.Zero(t, a.Pending, "%+v", a)
		require.Equal(t, a.Hits, a.Emitted+a.FilteredIdle+a.FilteredTarget+a.FilteredUnknown+a.dropped(), "%+v", a)
		emitted += a.Emitted
	}
	require.EqualValues(t, received, emitted, "samples that left the receiver and did not arrive")
}
