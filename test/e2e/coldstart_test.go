//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/corpus"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// coldBins are when the periods after the start of a program end in which samples are counted.
var coldBins = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second}

// coldRounds is how often each program starts, as a file that nobody has run before.
var coldRounds = size(5, 1, 1)

// coldCut is the share of the samples of the last period that may be cut: rows are there by then. A quick form decides
// nothing.
var coldCut = size(0.05, 1.0, 1.0)

// A coldProgram takes a CPU until it is ended.
type coldProgram struct {
	name    string
	command []string

	bytes   int64
	started time.Time
	samples [2][]int // by bin: all, and those that are cut
}

// TestBenchColdStart measures which part of the samples of a program is cut while its unwind
// rows are built, by the size of the program.
func TestBenchColdStart(t *testing.T) {
	testutil.RequireBPF(t)
	sink := &coldSink{t: t, programs: map[int64]*coldProgram{}}
	r := startReceiver(t, sink, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 499
		c.ReportInterval = time.Second
	})
	time.Sleep(unwindBegin)
	programs := coldPrograms(t)
	for range coldRounds {
		for _, p := range programs {
			p.run(t, sink)
		}
	}
	r.stop()
	fmt.Printf("%-10s %9s", "program", "MiB")
	for _, end := range coldBins {
		fmt.Printf(" %16s", "until "+end.String())
	}
	fmt.Println("   (samples, of which cut)")
	for _, p := range programs {
		fmt.Printf("%-10s %9.2f", p.name, float64(p.bytes)/(1<<20))
		for i := range coldBins {
			fmt.Printf(" %8d %6.1f%%", p.samples[0][i], 100*share(p.samples[1][i], p.samples[0][i]))
		}
		fmt.Println()
		last := len(coldBins) - 1
		require.NotZero(t, p.samples[0][last], p.name)
		require.LessOrEqual(t, share(p.samples[1][last], p.samples[0][last]), coldCut, p.name)
	}
}

func coldPrograms(t *testing.T) []*coldProgram {
	dir := t.TempDir()
	spin := filepath.Join(dir, "spin")
	require.NoError(t, os.WriteFile(spin+".c", []byte("int main(void) { for (;;) __asm__ volatile(\"\"); }"), 0o600))
	out, err := exec.Command(corpus.GCC, "-O2", "-o", spin, spin+".c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	source := filepath.Join(dir, "large.c")
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, "int f%d(int a, int *b) { int s = 0; for (int i = 0; i < a; i++) s += b[i] * %d + b[s & 7]; return s; }\n", i, i)
	}
	require.NoError(t, os.WriteFile(source, []byte(text.String()), 0o600))
	cc1, err := exec.Command(corpus.GCC, "-print-prog-name=cc1").Output()
	require.NoError(t, err)
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output() // python3 may be a script
	require.NoError(t, err)
	programs := []*coldProgram{
		{name: "C", command: []string{spin}},
		{name: "bash", command: []string{"bash", "-c", "while :; do :; done"}},
		{name: "python3", command: []string{strings.TrimSpace(string(python)), "-c", "while True: pass"}},
		{name: "cc1", command: []string{strings.TrimSpace(string(cc1)), "-quiet", "-O2", source, "-o", "/dev/null"}},
		{name: "node", command: []string{"node", "-e", "for (;;);"}},
	}
	for _, p := range programs {
		path, err := exec.LookPath(p.command[0])
		require.NoError(t, err)
		p.command[0], err = filepath.EvalSymlinks(path)
		require.NoError(t, err)
		for i := range p.samples {
			p.samples[i] = make([]int, len(coldBins))
		}
	}
	return programs
}

// run starts a copy of the program that differs from all others by its end, so that it shares
// no rows.
func (p *coldProgram) run(t *testing.T, sink *coldSink) {
	b, err := os.ReadFile(p.command[0])
	require.NoError(t, err)
	p.bytes = int64(len(b))
	path := filepath.Join(t.TempDir(), filepath.Base(p.command[0]))
	require.NoError(t, os.WriteFile(path, append(b, path...), 0o700))
	cmd := exec.Command(path, p.command[1:]...)
	sink.mu.Lock()
	p.started = time.Now()
	err = cmd.Start()
	if err == nil {
		sink.programs[int64(cmd.Process.Pid)] = p
	}
	sink.mu.Unlock()
	require.NoError(t, err)
	time.Sleep(coldBins[len(coldBins)-1])
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	time.Sleep(3 * time.Second) // its last batch
	sink.mu.Lock()
	delete(sink.programs, int64(cmd.Process.Pid))
	sink.mu.Unlock()
	require.NoError(t, os.Remove(path))
}

// coldSink counts the samples of programs by the time since their start.
type coldSink struct {
	t        *testing.T
	mu       sync.Mutex // guards the programs
	programs map[int64]*coldProgram
}

func (s *coldSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *coldSink) ConsumeProfiles(_ context.Context, profiles pprofile.Profiles) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stacks := stackReader{dict: profiles.Dictionary(), names: map[string]string{}}
	for _, rp := range profiles.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		p := s.programs[pid.Int()]
		if p == nil {
			continue
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				for _, sample := range profile.Samples().All() {
					p.count(sample, stacks.attribute(sample, "custom_labels.stack_truncated") != "")
				}
			}
		}
	}
	return nil
}

func (p *coldProgram) count(sample pprofile.Sample, cut bool) {
	for _, ns := range sample.TimestampsUnixNano().All() {
		since := time.Unix(0, int64(ns)).Sub(p.started)
		for i, end := range coldBins {
			if since < end {
				p.samples[0][i]++
				if cut {
					p.samples[1][i]++
				}
				break
			}
		}
	}
}
