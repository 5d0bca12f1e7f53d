//go:build linux && (amd64 || arm64)

package bench

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// idleProcesses and busyThreads are the steps. Each includes the one before.
var (
	idleProcesses = testutil.Size([]int{10, 1000, 5000}, []int{10, 200}, []int{10, 200})
	busyThreads   = testutil.Size([]int{1, 10, 100, 1000}, []int{1, 20}, []int{1, 20})
)

var (
	scaleSettle = testutil.Size(12*time.Second, 2*time.Second, 12*time.Second) // two batches, and the first look at all processes
	// scaleSteady holds one periodic look at all processes (RescanInterval).
	scaleSteady = testutil.Size(30*time.Second, 2*time.Second, 30*time.Second)
	threadTime  = testutil.Size(15*time.Second, 2*time.Second, 15*time.Second)
)

const (
	scaleRate   = 97
	scaleLabels = 3
	// ownExecutables are copies of programs of which a few processes run each, as in containers.
	ownExecutables = 40
	ownShare       = 5 // one process in so many is of these
	// goalIdleBytes of heap, and goalIdleMapBytes of BPF maps, for each idle process.
	goalIdleBytes, goalIdleMapBytes = 4 << 10, 1 << 10
)

// sleeper is a program that starts itself so many times; the copies wait.
const sleeper = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
const char *variant = VARIANT;
#ifdef LABELS
__attribute__((visibility("default"))) __thread void *custom_labels_current_set;
__attribute__((visibility("default"))) int custom_labels_abi_version = 1;
#endif
int main(int argc, char **argv) {
	if (argc < 2)
		for (;;) pause();
	for (int n = atoi(argv[1]); n > 0; n--) {
		pid_t pid = fork();
		if (pid == 0) {
			char *none[] = { argv[0], NULL };
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execv(argv[0], none);
			_exit(1);
		}
		if (pid < 0) return 1;
	}
	puts(variant);
	fflush(stdout);
	for (;;) pause();
}`

// TestBenchScale measures what the receiver takes in the built collector with more and
// more processes that do nothing, with more and more busy threads with labels, and with many
// programs that map executable memory all the time.
func TestBenchScale(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	printMachine(t)
	bare := measureBare(t)
	t.Run("idle processes", func(t *testing.T) { scaleIdle(t, bare) })
	t.Run("busy threads", func(t *testing.T) { scaleThreads(t, bare) })
	t.Run("executable mappings", scaleMapping)
}

func scaleIdle(t *testing.T, bare footprint) {
	programs := buildSleepers(t)
	var all []footprint
	fmt.Printf("idle processes, of %d executables; memory and CPU over the bare collector's; a process: against the first step\n", len(programs))
	fmt.Printf("%8s %12s %10s %9s %12s %16s %16s %16s\n", "", "resident MiB", "anonymous", "maps MiB", "CPU of one", "a process: bytes", "of BPF maps", "CPU µs a s")
	running := 0
	processes, heap, told := tableMemory(t)
	for i, n := range idleProcesses {
		startSleepers(t, programs, n-running)
		running = n
		c := startCollector(t, fmt.Sprintf(receiverConfig, fmt.Sprintf("samples_per_second: %d", scaleRate)))
		f := c.steadyFor(scaleSettle, scaleSteady)
		account := c.stop()
		dropped, why := lost(account)
		checkScale(t, account, dropped, why)
		all = append(all, f)
		per := ""
		if i > 0 {
			per = fmt.Sprintf("%16.0f %16.0f %16.1f", perOne(all, i, anonymous), perOne(all, i, mapMemory), 1e6*perOne(all, i, cpu))
		}
		fmt.Printf("%8d %12.1f %10.1f %9.1f %11.2f%% %s\n", n, float64(f.resident.total-bare.resident.total)/mib,
			float64(f.resident.anonymous-bare.resident.anonymous)/mib, float64(f.maps)/mib, 100*(f.cpuPerSecond-bare.cpuPerSecond), per)
	}
	last := len(all) - 1
	moreProcesses, moreHeap, moreTold := tableMemory(t)
	more := float64(moreProcesses - processes)
	fmt.Printf("heap of a process table: %.0f bytes a process more, of which it accounts for %.0f\n",
		float64(moreHeap-heap)/more, float64(moreTold-told)/more)
	if !testutil.Full() {
		return // so few processes say nothing of one
	}
	assert.LessOrEqual(t, float64(moreHeap-heap)/more, float64(goalIdleBytes), "bytes of heap a process")
	assert.LessOrEqual(t, perOne(all, last, mapMemory), float64(goalIdleMapBytes), "bytes of BPF maps a process")
}

func anonymous(f footprint) float64 { return float64(f.resident.anonymous) }
func mapMemory(f footprint) float64 { return float64(f.maps) }
func cpu(f footprint) float64       { return f.cpuPerSecond }

// perOne is by how much a value has grown with each process since the first step: from one
// step to the next, memory grows as the garbage collector sees fit.
func perOne(all []footprint, step int, of func(footprint) float64) float64 {
	return (of(all[step]) - of(all[0])) / float64(idleProcesses[step]-idleProcesses[0])
}

func scaleThreads(t *testing.T, bare footprint) {
	fmt.Printf("busy threads of one program, each with %d labels, %d samples a second and CPU, %d CPUs; over the bare collector's\n",
		scaleLabels, scaleRate, runtime.NumCPU())
	fmt.Printf("%8s %12s %10s %9s %12s %12s %10s %8s\n", "", "resident MiB", "anonymous", "maps MiB", "CPU of one", "µs a sample", "samples", "lost")
	for _, n := range busyThreads {
		path := filepath.Join(testutil.BuildWriters(t), "writer-v1-lib")
		w := testutil.StartPath(t, path, "spin", "--threads", strconv.Itoa(n), "--labels", strconv.Itoa(scaleLabels), "--seconds", writerSeconds)
		yield(t, w.PID)
		c := startCollector(t, fmt.Sprintf(receiverConfig, fmt.Sprintf("samples_per_second: %d", scaleRate)))
		f := c.steadyFor(scaleSettle, threadTime)
		account := c.stop()
		life := time.Since(c.readyAt)
		w.Stop()
		dropped, why := lost(account)
		used := f.cpuPerSecond - bare.cpuPerSecond
		fmt.Printf("%8d %12.1f %10.1f %9.1f %11.2f%% %12.1f %10d %8d%s\n", n, float64(f.resident.total-bare.resident.total)/mib,
			float64(f.resident.anonymous-bare.resident.anonymous)/mib, float64(f.maps)/mib, 100*used,
			1e6*used/(float64(account["emitted"])/life.Seconds()), account["emitted"], dropped, why)
		checkScale(t, account, dropped, why)
	}
}

// checkScale: a busy machine may lose samples, as it is for full measurements to judge.
func checkScale(t *testing.T, account map[string]int64, dropped int64, why string) {
	t.Helper()
	require.NotZero(t, account["emitted"])
	if testutil.Full() {
		require.Zero(t, dropped, why)
	}
}

// yield has all threads of a process run only when nothing else wants to: a thousand would
// leave a collector, on a machine with few CPUs, next to nothing.
func yield(t *testing.T, pid int) {
	t.Helper()
	eachThread(t, pid, func(tid int) {
		require.NoError(t, unix.SchedSetAttr(tid, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0))
	})
}

// buildSleepers builds programs with and without libraries and labels, first the two that
// most processes run.
func buildSleepers(t *testing.T) (paths []string) {
	t.Helper()
	for i := range 2 + ownExecutables {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("sleeper%d", i))
		args := []string{"-x", "c", "-O1", "-o", path, fmt.Sprintf("-DVARIANT=\"%d\"", i), "-"}
		if i%2 == 0 {
			args = append(args, "-static")
		}
		if i%4 == 1 {
			args = append(args, "-DLABELS", "-rdynamic")
		}
		compiler := exec.Command("gcc", args...)
		stdin, err := compiler.StdinPipe()
		require.NoError(t, err)
		go func() {
			defer stdin.Close()
			_, _ = stdin.Write([]byte(sleeper))
		}()
		out, err := compiler.CombinedOutput()
		require.NoError(t, err, "%s", out)
		paths = append(paths, path)
	}
	return paths
}

// startSleepers starts so many processes, which live until the end of the test.
func startSleepers(t *testing.T, programs []string, n int) {
	t.Helper()
	own := n / ownShare
	counts := make([]int, len(programs))
	for i := range n - own {
		counts[i%2]++
	}
	for i := range own {
		counts[2+i%ownExecutables]++
	}
	for i, count := range counts {
		if count == 0 {
			continue
		}
		cmd := exec.Command(programs[i], strconv.Itoa(count-1)) // the one that starts them is one itself
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		_, err = bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
	}
}
