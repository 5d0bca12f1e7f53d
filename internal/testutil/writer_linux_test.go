// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var variants = []string{
	"writer-v0-exe", "writer-v0-lib", "writer-v0-dlopen",
	"writer-v1-exe", "writer-v1-lib", "writer-v1-dlopen", "writer-v1-dlopengd", "writer-v1-dlopendesc", "writer-ctx-dlopengd",
	"writer-ctx-exe", "writer-ctx-lib", "writer-ctx-dlopen",
}

// A profiler sees what these stops see.
func TestFidelityWriters(t *testing.T) {
	const stops, threads = 40, 3
	for _, variant := range variants {
		t.Run(variant, func(t *testing.T) {
			testFidelity(t, variant, stops, threads, 2)
		})
	}
	t.Run("writer-ctx-lib in place", func(t *testing.T) {
		testFidelity(t, "writer-ctx-lib", stops, threads, stops, "--in-place")
	})
}

func testFidelity(t *testing.T, variant string, stops, threads, mayUpdate int, args ...string) {
	w := Start(t, variant, append(args, "fidelity", "--threads", fmt.Sprint(threads), "--seconds", "300", "--print-variables")...)
	require.Len(t, w.Variables, threads)
	last := map[int]uint64{}
	caught := map[int]bool{} // in an update, when it was last stopped: it may not have run since
	updating, moved := 0, 0
	enough := stops * threads / 4
	// On a busy machine, threads may not run between two stops.
	for end := time.Now().Add(time.Minute); stops > 0 || moved <= enough && time.Now().Before(end); stops-- {
		whileStopped(t, w, func(s stopped) {
			for _, v := range w.Variables {
				p, err := s.read(variant, v.Addr)
				before := caught[v.TID]
				caught[v.TID] = errors.Is(err, errUpdating)
				if caught[v.TID] {
					if !before {
						updating++
					}
					continue
				}
				require.NoError(t, err)
				n := verify(t, uint32(v.TID), p)
				require.GreaterOrEqual(t, n, last[v.TID])
				if n > last[v.TID] {
					moved++
				}
				last[v.TID] = n
			}
		})
		time.Sleep(2 * time.Millisecond)
	}
	require.LessOrEqual(t, updating, mayUpdate)
	require.Greater(t, moved, enough, "the sets should change all the time")
	w.Stop()
}

func verify(t *testing.T, tid uint32, p published) uint64 {
	if p.labels != nil {
		require.Len(t, p.labels, 2)
		n, err := VerifyFidelity(tid, p.labels["check"], p.labels["pad"])
		require.NoError(t, err)
		return n
	}
	require.Len(t, p.attrs, 2)
	n, err := VerifyFidelity(tid, p.attrs[0], p.attrs[1])
	require.NoError(t, err)
	fromIDs, err := VerifyFidelityIDs(tid, p.traceID, p.spanID)
	require.NoError(t, err)
	require.Equal(t, n, fromIDs)
	return n
}

func TestSharesWriter(t *testing.T) { Measure(t, measureSharesWriter) }

func measureSharesWriter(t *testing.T, bounds *Bounds) {
	file := filepath.Join(t.TempDir(), "truth.json")
	w := Start(t, "writer-v1-lib", "shares", "--threads", "2", "--seconds", "300", "--truth", file, "--uid-prefix", "x-")
	_, err := ReadTruth(file)
	require.NoError(t, err, "the file exists from the start")
	require.Eventually(t, func() bool { // on a busy machine, CPU time takes its time
		truth, err := ReadTruth(file)
		return err == nil && truth.By("tenant")["x-acme"] > 500*time.Millisecond
	}, time.Minute, 100*time.Millisecond, "and is kept up to date")
	w.Stop()
	truth, err := ReadTruth(file)
	require.NoError(t, err)
	require.Equal(t, w.PID, truth.PID)
	require.Equal(t, "v1", truth.ABI)
	require.Len(t, truth.Sets, 7)

	tenants := truth.By("tenant")
	var total time.Duration
	for _, cpu := range tenants {
		total += cpu
	}
	for name, percent := range map[string]float64{"x-acme": 50, "x-globex": 30, "x-initech": 15, "x-umbrella": 5} {
		require.InDelta(bounds, percent, 100*float64(tenants[name])/float64(total), 1.5, name)
	}
}

func TestSharesWriterTenantIsInTheTraceID(t *testing.T) {
	w := Start(t, "writer-ctx-exe", "shares", "--seconds", "300", "--print-variables")
	whileStopped(t, w, func(s stopped) {
		p, err := s.read("writer-ctx-exe", w.Variables[0].Addr)
		require.NoError(t, err)
		tenant, route := SharesTenant(p.traceID)
		require.Equal(t, []string{"acme", "globex", "initech", "umbrella"}[tenant], p.attrs[0])
		require.Contains(t, []int{0, 1}, route)
		require.True(t, strings.HasPrefix(p.attrs[1], "/"))
	})
}

func TestSwitchWriter(t *testing.T) {
	tests := []struct {
		variant, pattern string
		shares           map[string]float64
		delta            float64
	}{
		{"writer-v0-dlopen", "random", map[string]float64{"t0": .4, "t1": .3, "t2": .2, "t3": .1}, .12},
		{"writer-ctx-lib", "30,90", map[string]float64{"A": .25, "B": .75}, .05},
	}
	for _, tt := range tests {
		Measure(t, func(t *testing.T, bounds *Bounds) {
			file := filepath.Join(t.TempDir(), "switches")
			w := Start(t, tt.variant, "switch", "--seconds", "300", "--log", file, "--pattern", tt.pattern, "--print-variables")
			require.Len(t, w.Variables, 1)
			require.Eventually(t, func() bool {
				log, err := ReadSwitchLog(file)
				return err == nil && len(log.Switches) > 0 &&
					time.Duration(log.Switches[len(log.Switches)-1].CPUNs) > 1500*time.Millisecond
			}, time.Minute, 100*time.Millisecond)
			w.Stop()
			log, err := ReadSwitchLog(file)
			require.NoError(t, err)
			require.Equal(t, w.PID, log.PID)
			require.Equal(t, w.Variables[0].TID, log.TID)

			first, last := log.Switches[0], log.Switches[len(log.Switches)-1]
			require.EqualValues(t, switchLogNoTenant, last.Tenant)
			window, err := log.Window(first.MonoNs, last.MonoNs)
			require.NoError(t, err)
			cpu := float64(last.CPUNs - first.CPUNs)
			require.Len(t, window, len(tt.shares))
			for tenant, share := range tt.shares {
				require.InDelta(bounds, share, float64(window[tenant])/cpu, tt.delta, tenant)
			}
		})
	}
}

func TestSwitchWriterSwitchesAboutEveryMillisecond(t *testing.T) { Measure(t, measureDwells) }

func measureDwells(t *testing.T, bounds *Bounds) {
	file := filepath.Join(t.TempDir(), "switches")
	w := Start(t, "writer-ctx-exe", "switch", "--seconds", "300", "--log", file, "--print-variables")
	for range 20 {
		whileStopped(t, w, func(s stopped) {
			p, err := s.read("writer-ctx-exe", w.Variables[0].Addr)
			require.NoError(t, err)
			tenant, ok := SwitchTenant(p.traceID, p.spanID)
			require.True(t, ok)
			log, err := ReadSwitchLog(file)
			require.NoError(t, err)
			require.Equal(t, log.Tenants[tenant], p.attrs[0])
		})
		time.Sleep(3 * time.Millisecond)
	}
	w.Stop()
	log, err := ReadSwitchLog(file)
	require.NoError(t, err)
	dwells := len(log.Switches) - 1
	mean := float64(log.Switches[dwells].CPUNs-log.Switches[0].CPUNs) / float64(dwells)
	require.InDelta(bounds, 1e6, mean, 0.3e6)
}

func TestSpinWriter(t *testing.T) {
	for _, variant := range []string{"writer-v0-lib", "writer-v1-exe", "writer-ctx-dlopen"} {
		w := Start(t, variant, "spin", "--labels", "10", "--value-bytes", "30", "--threads", "2", "--seconds", "300", "--print-variables")
		require.Len(t, w.Variables, 2)
		whileStopped(t, w, func(s stopped) {
			p, err := s.read(variant, w.Variables[1].Addr)
			require.NoError(t, err)
			require.Equal(t, 10, len(p.labels)+len(p.attrs))
			if p.labels != nil {
				require.Equal(t, strings.Repeat("d", 30), p.labels["label_03"])
			} else {
				require.Equal(t, strings.Repeat("d", 30), p.attrs[3])
			}
		})
		w.Stop()
	}
	Start(t, "spin-plain", "spin", "--seconds", "300").Stop()
}

// They survive their own hostility.
func TestHostileWriter(t *testing.T) {
	for _, variant := range []string{"writer-v0-exe", "writer-v1-lib", "writer-ctx-dlopen"} {
		t.Run(variant, func(t *testing.T) {
			out, err := exec.Command(filepath.Join(BuildWriters(t), variant), "hostile", "list").Output()
			require.NoError(t, err)
			kinds := strings.Fields(string(out))
			require.Greater(t, len(kinds), 15)
			for _, kind := range kinds {
				Start(t, variant, "hostile", kind, "--seconds", "300").Stop()
			}
			Start(t, variant, "hostile", "all", "--seconds", "1").Wait(20 * time.Second)
		})
	}
}

func TestWriterDiesWithItsParent(t *testing.T) {
	shell := exec.Command("sh", "-c", `"$1" spin --seconds 60 & wait`, "sh", filepath.Join(BuildWriters(t), "writer-v1-exe"))
	stdout, err := shell.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, shell.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	var pid int
	_, err = fmt.Sscanf(line, "ready %d", &pid)
	require.NoError(t, err)
	require.NoError(t, shell.Process.Kill())
	_ = shell.Wait()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, time.Minute, 10*time.Millisecond)
}

func TestWriterUsage(t *testing.T) {
	writer := filepath.Join(BuildWriters(t), "writer-v1-exe")
	for _, args := range [][]string{
		{}, {"nothing"}, {"switch"}, {"switch", "--log", "x", "--pattern", "y"}, {"spin", "--seconds", "0"},
		{"spin", "--threads", "x"}, {"spin", "extra"}, {"hostile"}, {"hostile", "nothing"}, {"shares", "--uid-prefix", `"`},
	} {
		var exit *exec.ExitError
		require.ErrorAs(t, exec.Command(writer, args...).Run(), &exit, "%q", args)
		require.Equal(t, 2, exit.ExitCode(), "%q", args)
	}
}
