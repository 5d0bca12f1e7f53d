//go:build linux && (amd64 || arm64)

package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// collectorPath is where `make collector` leaves the collector.
const collectorPath = "../../build/otelcol-customlabels"

// bareConfig starts the collector without anything in it: no pipeline, so that
// not even the nop exporter is made.
const bareConfig = `
exporters: {nop: }
service:
  telemetry: {metrics: {level: none}, logs: {encoding: json}}
`

// receiverConfig is the receiver with its defaults and the nop exporter; the
// verb is for more of its configuration.
const receiverConfig = `
receivers:
  custom_labels: {%s}
exporters: {nop: }
service:
  pipelines: {profiles: {receivers: [custom_labels], exporters: [nop]}}
  telemetry: {metrics: {level: none}, logs: {encoding: json}}
`

const (
	collectorTimeout = 30 * time.Second
	// signalDelay after it is ready, the collector listens to signals.
	signalDelay    = 200 * time.Millisecond
	messageReady   = "Everything is ready. Begin running and processing data."
	messageAccount = "sampling has ended"
)

// A collector is a running one.
type collector struct {
	t       *testing.T
	cmd     *exec.Cmd
	startup time.Duration // from the start of the process until it is ready
	readyAt time.Time
	log     *bufio.Reader
	output  strings.Builder
}

// startCollector returns when the collector is ready.
func startCollector(t *testing.T, config string) *collector {
	t.Helper()
	return startCommand(t, []string{collectorPath}, config)
}

// startCommand is startCollector for another one, whose command may be several words.
func startCommand(t *testing.T, command []string, config string) *collector {
	t.Helper()
	for _, path := range command {
		require.FileExists(t, path, "make builds it")
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	args := append(slices.Clone(command[1:]), "--config", path, "--feature-gates=service.profilesSupport,service.AllowNoPipelines")
	c := &collector{t: t, cmd: exec.Command(command[0], args...)}
	stderr, err := c.cmd.StderrPipe()
	require.NoError(t, err)
	started := time.Now()
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	timeout := time.AfterFunc(collectorTimeout, func() { _ = c.cmd.Process.Kill() })
	defer timeout.Stop()
	c.log = bufio.NewReader(stderr)
	_, found := c.await(messageReady)
	c.readyAt = time.Now()
	c.startup = c.readyAt.Sub(started)
	require.True(t, found, "the collector did not start: %s", c.output.String())
	return c
}

// await reads the log up to an entry and returns its fields.
func (c *collector) await(message string) (map[string]any, bool) {
	for {
		line, err := c.log.ReadBytes('\n')
		c.output.Write(line)
		if err != nil {
			return nil, false
		}
		var entry map[string]any
		if json.Unmarshal(line, &entry) == nil && entry["msg"] == message {
			return entry, true
		}
	}
}

// stop ends the collector as an operator would and returns what the receiver
// says became of every hit; nil of a bare collector.
func (c *collector) stop() map[string]int64 {
	c.t.Helper()
	time.Sleep(time.Until(c.readyAt.Add(signalDelay)))
	require.NoError(c.t, c.cmd.Process.Signal(syscall.SIGTERM))
	timeout := time.AfterFunc(collectorTimeout, func() { _ = c.cmd.Process.Kill() })
	defer timeout.Stop()
	entry, found := c.await(messageAccount)
	_, err := io.Copy(&c.output, c.log)
	require.NoError(c.t, err)
	require.NoError(c.t, c.cmd.Wait(), "%s", c.output.String())
	if !found {
		return nil
	}
	account := map[string]int64{}
	for name, value := range entry {
		if n, ok := value.(float64); ok {
			account[name] = int64(n)
		}
	}
	return account
}

func (c *collector) pid() int { return c.cmd.Process.Pid }

// lost is the samples that were taken and not delivered.
func lost(account map[string]int64) (n int64, why string) {
	for name, dropped := range account {
		if reason, ok := strings.CutPrefix(name, "dropped_"); ok && dropped > 0 {
			n += dropped
			why += fmt.Sprintf(" %s %d", reason, dropped)
		}
	}
	return n, why
}
