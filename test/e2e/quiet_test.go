//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	quietInterval = 2 * time.Second // instead of a minute
	quietFor      = 6               // of them; what has matched nothing is said after five
)

// A situation is a program, a configuration that samples it alone, if it says nothing else, and
// what the log has then between the lines of the start and of the end.
type situation struct {
	program string // path
	offCPU  bool   // is profiled as well
	change  func(c *customlabelsreceiver.Config)
	derived func(o *pipeline.Options)
	refuse  func(stopped <-chan struct{}) error
	want    []string
}

const (
	logStarted = "Sampling has started."
	logEnded   = "Sampling has ended."
	logSilent  = "Nothing was emitted for a minute, though the CPUs were busy."
	// logNoEvents depends on the kernel, not on the situation.
	logNoEvents = "Process contexts are found by polling, somewhat later than they are published: this kernel lets no BPF program trace the function by which they are named. All else works."
)

// TestQuiet: what the log says in situations that operators meet, line by line, and nothing
// else.
func TestQuiet(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.Measure(t, measureQuiet)
}

func measureQuiet(t *testing.T, bounds *testutil.Bounds) {
	writers := testutil.BuildWriters(t)
	// Copies, so that no other process is sampled.
	program := func(path string, args ...string) string {
		own := filepath.Join(t.TempDir(), filepath.Base(path))
		copyFile(t, path, own, 0o755)
		require.NoError(t, os.Chmod(filepath.Dir(own), 0o755))
		startUntilEnd(t, own, args)
		return own
	}
	labelled := program(filepath.Join(writers, "writer-v1-exe"), "spin", "--seconds", "600")
	plain := program(filepath.Join(writers, "spin-plain"), "spin", "--seconds", "600")
	unreadable := program(compileProgram(t, "../../testdata/hostile/version.c", "-rdynamic"))
	rule := []customlabelsreceiver.LabelRule{{Key: "nobody.has.this", Action: "drop"}}
	situations := map[string]situation{
		"a program with labels":    {program: labelled},
		"a program without labels": {program: plain},
		"labels are off": {program: labelled, change: func(c *customlabelsreceiver.Config) {
			c.Labels.Enabled = false
		}},
		"off-CPU as well": {program: labelled, offCPU: true, change: func(c *customlabelsreceiver.Config) {
			*c.OffCPU.GetOrInsertDefault() = customlabelsreceiver.OffCPU{Threshold: 1}
		}},
		"targets select nothing": {program: plain, change: func(c *customlabelsreceiver.Config) {
			c.Targets.Include[0].Executable = "/opt/nobody/has/this"
		}, want: []string{
			logSilent + " targets select no process that ran",
			`A selector of targets has matched no process for five minutes. include[0]: executable: "/opt/nobody/has/this"`,
		}},
		"only programs with labels, and there is none": {program: plain, change: func(c *customlabelsreceiver.Config) {
			c.Targets.LabelledOnly = true
		}, want: []string{
			logSilent + " no process that ran is selected by targets and has a label source; labelprof inspect PID says why one has none",
		}},
		"a rule for a key that nobody has": {program: labelled, change: func(c *customlabelsreceiver.Config) {
			c.Labels.Rules = rule
		}, want: []string{"A rule of labels has matched nothing for five minutes. nobody.has.this"}},
		"the consumer refuses": {program: plain, refuse: func(<-chan struct{}) error {
			return errors.New("no thanks")
		}, want: []string{
			"The next consumer refused profiles. no thanks",
			logSilent + " the next consumer refused all profiles; the log of the exporters says why",
		}},
		"the consumer never answers": {program: plain, refuse: func(stopped <-chan struct{}) error {
			<-stopped
			return nil
		}, derived: func(o *pipeline.Options) { o.Batches.MaxPending = 1 }, want: []string{
			logSilent + " the next consumer takes longer than samples can wait, and they were dropped: pending_full",
		}},
		"labels that cannot be read": {program: unreadable, want: []string{
			"A label source cannot be read. unsupported_version",
		}},
	}
	if testutil.Can(t, testutil.Userfaultfd) {
		situations["a process that never answers"] = situation{
			program: program(compileProgram(t, "../../testdata/hostile/unserved.c"), strconv.Itoa(attacker)),
			want: []string{
				"A process does not let itself be read: its memory or one of its files never answers. It is left alone.",
				logSilent + " targets select no process that ran", // it waits
			},
		}
	}
	var shown sync.Mutex
	t.Run("all", func(t *testing.T) {
		for name, s := range situations {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.check(t, bounds, &shown)
			})
		}
	})
}

// check prints the lines of the log and compares them.
func (s *situation) check(t *testing.T, bounds *testutil.Bounds, shown *sync.Mutex) {
	stopped := make(chan struct{})
	out := &sink{t: t}
	if s.refuse != nil {
		out.refuse = func() error { return s.refuse(stopped) }
	}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond, c.ReportInterval = 97, 100*time.Millisecond
		c.Targets.Include = []customlabelsreceiver.TargetSelector{{Executable: s.program}}
		if s.change != nil {
			s.change(c)
		}
	}, func(o *pipeline.Options) { o.NoticeInterval = quietInterval }, s.derived)
	time.Sleep(quietFor * quietInterval)
	before := r.logs.All()
	close(stopped)
	r.stop()

	shown.Lock()
	defer shown.Unlock()
	fmt.Printf("%s:\n", t.Name())
	var got []string
	ended := 0
	for _, e := range append(before, r.logs.FilterMessage(logEnded).All()...) {
		line := e.Message
		for _, key := range []string{"why", "selector", "key", "state", "error"} {
			if text, ok := e.ContextMap()[key].(string); ok {
				line += " " + text
				break
			}
		}
		fmt.Printf("  %-5s %s\n", e.Level, line)
		switch e.Message {
		case logNoEvents:
		case logEnded:
			ended++
		default:
			got = append(got, line)
		}
	}
	require.NotEmpty(t, got)
	assert.Equal(t, logStarted, got[0])
	assert.Equal(t, 1+count(s.offCPU), ended)
	assert.ElementsMatch(bounds, s.want, got[1:], t.Name()) // a busy machine may let nothing be emitted for seconds
}

// startUntilEnd runs a program that says when it is ready, until the test ends.
func startUntilEnd(t *testing.T, path string, args []string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
}
