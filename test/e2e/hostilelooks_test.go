//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	// costlyPrograms run at a time, each of a file that nobody has seen.
	costlyPrograms = 6
	// costlyDelay is what they may cost another user's new process.
	costlyDelay = time.Second
	// costlyRounds of new processes take longer than a look at one of the programs. The median of each round
	// counts: of so many, one is late because the machine is.
	costlyRounds = 6
	// costlySeconds of a CPU have looks at them taken before it is measured: the user owes time, also where a
	// busy machine has all of them begin at once.
	costlySeconds = 2
	// costlyStop is what a receiver takes at most to stop while looks at them go on.
	costlyStop = 2 * time.Second
	// costlyUnits are read before the ones that say where Go keeps its labels.
	costlyUnits = 14 << 20
)

// runCostly runs copies of a program, each for a second.
const runCostly = `n=0
while :; do
	n=$((n+1))
	cp "$0" "$1.$n"
	timeout 1 "$1.$n"
	rm "$1.$n"
done`

// TestHostileLooks: a user who starts programs whose debug information takes seconds to read.
// New processes of another user have their first label as if there were none, also where the receiver has just
// started, which does not know then what that user has taken.
func TestHostileLooks(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.Measure(t, measureLooks)
}

func measureLooks(t *testing.T, bounds *testutil.Bounds) {
	program, err := os.ReadFile(compileProgram(t, "../../testdata/replaced/program.c", "-rdynamic"))
	require.NoError(t, err)
	start := func() (*running, *firstLabels) {
		first := &firstLabels{at: map[int64]uint64{}}
		return startReceiver(t, &sink{t: t, visit: first.visit}, func(c *customlabelsreceiver.Config) {
			c.SamplesPerSecond = 997
			c.ReportInterval = 200 * time.Millisecond
		}), first
	}
	r, first := start()
	without := first.delays(t, program)[victims/2]

	costly := buildCostly(t)
	spent := func() int64 { return r.metric("background_cpu", "work")["processes"] }
	quiet := spent()
	dir := userDir(t, attacker)
	for i := range costlyPrograms {
		cmd := exec.Command("sh", "-c", runCostly, costly, filepath.Join(dir, fmt.Sprint(i)))
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Pdeathsig: syscall.SIGKILL, Setpgid: true, Credential: &syscall.Credential{Uid: attacker, Gid: attacker},
		}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			_ = cmd.Wait() // it was killed
		})
	}
	attacked := func() bool { return spent() >= quiet+costlySeconds }
	require.Eventually(t, attacked, 5*time.Minute, 50*time.Millisecond, "looks at them go on")
	var with time.Duration
	for range costlyRounds {
		with = max(with, first.delays(t, program)[victims/2])
	}
	fmt.Printf("first label of a new process: after a median of %v, beside %d programs that take seconds to read %v\n", without, costlyPrograms, with)
	require.LessOrEqual(bounds, with, without+costlyDelay)
	began := time.Now()
	r.stop()
	require.Less(bounds, time.Since(began), costlyStop, "looks end with the receiver")
	requireClosed(t, r.account())

	r, first = start()
	with = first.delays(t, program)[victims-1]
	fmt.Printf("at most %v with a receiver that has just started\n", with)
	require.LessOrEqual(bounds, with, without+costlyDelay)
	r.stop()
	requireClosed(t, r.account())
}

// buildCostly builds a program of Go that sleeps, with debug information that takes seconds to read,
// and little room when it is compressed.
func buildCostly(t *testing.T) string {
	t.Helper()
	dir := publicDir(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	run := func(name string, args ...string) {
		out, err := exec.Command(name, args...).CombinedOutput()
		require.NoError(t, err, "%s %v: %s", name, args, out)
	}
	source := "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(time.Hour) }\n"
	require.NoError(t, os.WriteFile(path("main.go"), []byte(source), 0o600))
	run("go", "build", "-ldflags=-compressdwarf=false", "-o", path("plain"), path("main.go"))
	run("objcopy", "-O", "binary", "--only-section=.debug_info", "--set-section-flags", ".debug_info=alloc", path("plain"), path("info"))
	info, err := os.ReadFile(path("info"))
	require.NoError(t, err)
	require.NotEmpty(t, info)
	// A unit with nothing in it: length, version, type, size of addresses, abbreviations, no entry.
	var unit []byte
	unit = binary.NativeEndian.AppendUint32(unit, 9)
	unit = binary.NativeEndian.AppendUint16(unit, 5)
	unit = append(unit, 1, 8, 0, 0, 0, 0, 0)
	require.NoError(t, os.WriteFile(path("units"), append(bytes.Repeat(unit, costlyUnits), info...), 0o600))
	run("objcopy", "--update-section", ".debug_info="+path("units"), path("plain"), path("large"))
	run("objcopy", "--compress-debug-sections=zlib", path("large"), path("costly"))
	require.NoError(t, os.Remove(path("large")))
	require.NoError(t, os.Chmod(path("costly"), 0o755)) //nolint:gosec // other users run it
	return path("costly")
}
