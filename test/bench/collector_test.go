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

	"github.com/customlabels/otelcol-customlabels/test/bench/emitted"
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
	// collectorTimeout is enough for the peer, too, on a busy machine.
	collectorTimeout = 3 * time.Minute
	// signalDelay after it is ready, the collector listens to signals.
	signalDelay    = 200 * time.Millisecond
	messageReady   = "Everything is ready. Begin running and processing data."
	messageAccount = "Sampling has ended."
)

// A collector is a running one.
type collector struct {
	t       *testing.T
	cmd     *exec.Cmd
	startup time.Duration // from the start of the process until it is ready
	readyAt time.Time
	// entries of the log that are awaited; closed at the log's end. Then output is complete.
	entries chan map[string]any
	output  strings.Builder
	// profiles is the file in which the exporter profiles_file writes, if there is one.
	profiles string
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
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	args := append(slices.Clone(command[1:]), "--config", path, "--feature-gates=service.profilesSupport,service.AllowNoPipelines")
	c := &collector{
		t: t, cmd: exec.Command(command[0], args...), entries: make(chan map[string]any, 2), profiles: filepath.Join(dir, "profiles"),
	}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.Env = append(os.Environ(), emitted.FileEnv+"="+c.profiles)
	stderr, err := c.cmd.StderrPipe()
	require.NoError(t, err)
	started := time.Now()
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	go c.readLog(stderr)
	_, found := c.await(messageReady)
	c.readyAt = time.Now()
	c.startup = c.readyAt.Sub(started)
	if !found {
		_ = c.cmd.Process.Kill()
		c.drainLog()
		require.Fail(t, "the collector did not start", c.output.String())
	}
	return c
}

// readLog reads all the time: a collector whose log nobody reads stands still.
func (c *collector) readLog(stderr io.Reader) {
	defer close(c.entries)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadBytes('\n')
		c.output.Write(line)
		if err != nil {
			return
		}
		var entry map[string]any
		if json.Unmarshal(line, &entry) == nil && (entry["msg"] == messageReady || entry["msg"] == messageAccount) {
			c.entries <- entry
		}
	}
}

// await returns the fields of an entry of the log.
func (c *collector) await(message string) (map[string]any, bool) {
	timeout := time.After(collectorTimeout)
	for {
		select {
		case entry, ok := <-c.entries:
			if !ok || entry["msg"] == message {
				return entry, ok
			}
		case <-timeout:
			return nil, false
		}
	}
}

// drainLog waits for the end of the log.
func (c *collector) drainLog() {
	for range c.entries {
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
	c.drainLog()
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
