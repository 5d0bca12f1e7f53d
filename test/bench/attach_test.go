//go:build linux && (amd64 || arm64)

package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup/wakeuptest"
)

const attachTimeout = 2 * time.Minute

var (
	attachRounds    = testutil.Size(5, 1, 1)
	attachProcesses = testutil.Size(1000, 100, 100)
)

// herd is a program that becomes many processes, which wait.
const herd = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#ifdef LABELS
__attribute__((visibility("default"))) __thread void *custom_labels_current_set;
__attribute__((visibility("default"))) int custom_labels_abi_version = 1;
#endif
int main(int argc, char **argv) {
	for (int n = atoi(argv[1]); n > 0; n--) {
		pid_t pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;) pause();
		}
		if (pid < 0) return 1;
		printf("%d\n", pid);
	}
	fflush(stdout);
	for (;;) pause();
}`

// An attachCase is many processes of one executable.
type attachCase struct {
	name   string
	flags  []string
	events []record.Event
	labels bool

	wallMs, cpuMs, ratio []float64 // by round
	fileBytes            int64     // read of files, by all processes together
	procBytes            int64     // read of /proc, by one process
}

// TestBenchAttach measures what it takes to learn of a thousand processes of one
// executable, from the event to their label sources, with a table that knows
// nothing yet. The cases take turns. What is exact is that files are read once.
func TestBenchAttach(t *testing.T) {
	testutil.RequireRoot(t)
	printMachine(t)
	cases := []*attachCase{{name: "no labels"}, {name: "custom labels v1", flags: []string{"-DLABELS"}, labels: true}}
	for _, c := range cases {
		c.start(t)
		_, _, one := c.attach(t, 1)
		_, _, all := c.attach(t, attachProcesses)
		c.procBytes = (all - one) / int64(attachProcesses-1)
		c.fileBytes = one - c.procBytes
	}
	for range attachRounds {
		for _, c := range cases {
			wall, cpu, _ := c.attach(t, attachProcesses)
			c.wallMs, c.cpuMs = append(c.wallMs, wall), append(c.cpuMs, cpu)
			c.ratio = append(c.ratio, cpu/cases[0].cpuMs[len(c.cpuMs)-1])
		}
	}
	fmt.Printf("Attaching %d processes of one executable, median of %d rounds\n", attachProcesses, attachRounds)
	fmt.Printf("%-18s %9s %15s %9s %15s %6s %14s %20s\n", "", "ms", "lowest–highest", "CPU ms", "lowest–highest", "ratio", "bytes of files", "of /proc, each one")
	for _, c := range cases {
		fmt.Printf("%-18s %9.1f %15s %9.1f %15s %6.2f %14d %20d\n", c.name, median(c.wallMs), spread(c.wallMs, "%.0f"),
			median(c.cpuMs), spread(c.cpuMs, "%.0f"), median(c.ratio), c.fileBytes, c.procBytes)
	}
	for _, c := range cases {
		require.Less(t, 2*c.procBytes, c.fileBytes, "%s: files are read once, not by every process", c.name)
	}
}

// start makes the processes, which live until the end of the test.
func (c *attachCase) start(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "herd")
	require.NoError(t, os.WriteFile(path+".c", []byte(herd), 0o644))
	out, err := exec.Command("gcc", append([]string{"-O1", "-rdynamic", "-o", path, path + ".c"}, c.flags...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(path, strconv.Itoa(attachProcesses))
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(stdout)
	for len(c.events) < attachProcesses && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		require.NoError(t, err)
		st, err := procfs.FS{}.Stat(pid)
		require.NoError(t, err)
		id := record.ProcessID{TGID: uint32(pid), StartNs: st.StartTicks * (1e9 / procfs.TicksPerSecond)}
		c.events = append(c.events, record.Event{Kind: record.EventExists, Process: id, PID: pid})
	}
	require.Len(t, c.events, attachProcesses)
}

// attach tells a new table of the first n processes, and waits until it has told
// of their label sources.
func (c *attachCase) attach(t *testing.T, n int) (wallMs, cpuMs float64, bytes int64) {
	t.Helper()
	p := &announced{done: make(chan struct{}), missing: n}
	table := process.NewTable(process.Options{Publisher: p, RescanInterval: time.Hour, Alarm: wakeuptest.Alarm(t)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	bytesBefore, cpuBefore, start := readBytes(t), cpuSelf(t), time.Now()
	for _, ev := range c.events[:n] {
		table.HandleEvent(ev)
	}
	running.Go(func() { table.Run(ctx) })
	select {
	case <-p.done:
	case <-time.After(attachTimeout):
		require.Fail(t, "processes are missing")
	}
	wall, cpu := time.Since(start), cpuSelf(t)-cpuBefore
	cancel()
	running.Wait()
	bytes = readBytes(t) - bytesBefore

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sources := range p.sources {
		require.Equal(t, c.labels, len(sources) == 1, c.name)
		require.False(t, c.labels && sources[0].ABI != record.ABIV1)
	}
	require.Equal(t, 3, table.Stats().Files, "the executable, libc and the loader")
	return float64(wall) / 1e6, float64(cpu) / 1e6, bytes
}

// announced is a process.Publisher that tells when it has heard of so many processes.
type announced struct {
	mu      sync.Mutex
	sources [][]record.LabelSource
	missing int
	done    chan struct{}
}

func (a *announced) Filter(record.ProcessID) error { return nil }

func (a *announced) SetLabelSources(_ record.ProcessID, sources []record.LabelSource) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sources = append(a.sources, sources)
	if a.missing--; a.missing == 0 {
		close(a.done)
	}
	return nil
}

func (a *announced) Forget(record.ProcessID) error { return nil }

func (a *announced) ForgetRunning(record.ProcessID) error { return nil }

// readBytes is what this process has asked read(2) and its like for, files and
// /proc alike.
func readBytes(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "rchar: ")
	require.True(t, ok)
	value, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(value, 10, 64)
	require.NoError(t, err)
	return n
}

// cpuSelf is the time that this process has run.
func cpuSelf(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts))
	return time.Duration(ts.Nano())
}
