//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A CPU that goes and comes back is sampled again, whether or not anyone looked in between.
func TestCPUHotplug(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.Need(t, testutil.SwitchCPUs)
	const cpu = 1
	path := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu)
	set := func(online string) { require.NoError(t, os.WriteFile(path, []byte(online), 0)) }
	setAtEnd(t, path, "1")
	program := buildTarget(t)
	for _, noticed := range []bool{true, false} {
		s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
		require.NoError(t, s.Follow())
		require.NoError(t, s.Start())
		sampled := func() {
			tgt := startTarget(t, program, "labels-1")
			only := unix.CPUSet{}
			only.Set(cpu)
			require.NoError(t, unix.SchedSetaffinity(int(tgt.pid), &only))
			readUntil(t, s, func(r *Record) bool { return r.PID == tgt.pid && r.CPU == cpu })
		}
		sampled()
		set("0")
		if noticed {
			_, err := s.UpdateCPUs()
			require.NoError(t, err)
			require.NotContains(t, slices.Collect(maps.Keys(s.clocks)), cpu)
			require.NotContains(t, slices.Collect(maps.Keys(s.sideband.rings)), cpu)
		}
		set("1")
		told := false
		for range 3 { // what was away is told from the third look on
			time.Sleep(10 * time.Millisecond)
			lost, err := s.UpdateCPUs()
			require.NoError(t, err)
			told = told || lost
		}
		require.True(t, told, "its mappings had no events")
		require.Contains(t, slices.Collect(maps.Keys(s.sideband.rings)), cpu)
		drainNow(t, s)
		sampled()
		require.NoError(t, s.Close())
	}
}

// setAtEnd writes to a file of the machine when the test ends, also when this process is killed.
func setAtEnd(t *testing.T, path, text string) {
	cmd := exec.Command("/bin/sh", "-c", `read -r _; printf %s "$2" >"$1"`, "sh", path, text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // who kills a test kills its group
	alive, err := cmd.StdinPipe()                        // ends with this process
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, alive.Close())
		require.NoError(t, cmd.Wait())
	})
}

// Of CPUs that may come there is room for as many as are present, or some; one beyond that is told of.
func TestRoomForCPUs(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	cpus, err := HostCPUs()
	require.NoError(t, err)
	require.Equal(t, runtime.NumCPU(), cpus.Online, "all of this process's are online")
	require.LessOrEqual(t, cpus.Online, cpus.Room)
	require.LessOrEqual(t, cpus.Room, cpus.Possible)
	require.EqualValues(t, cpus.Room, s.objs.Scratches.MaxEntries())
	most := 5<<20 + cpus.Possible*PossibleCPUBytes + cpus.Room*RoomCPUBytes
	require.Less(t, s.fixedBytes, most)
	t.Logf("%d possible CPUs, %d online, room for %d: %.1f MiB of BPF maps of fixed size", cpus.Possible, cpus.Online, cpus.Room, float64(s.fixedBytes)/(1<<20))
	require.NoError(t, s.Start())
	s.mu.Lock()
	defer s.mu.Unlock()
	require.ErrorContains(t, s.updateCPU(cpus.Room, nil), "is not sampled: it came online after the start")

	require.Equal(t, CPUs{Possible: 4, Online: 2, Room: 4}, cpusOf("0-3", "0,3", "0-3"))
	require.Equal(t, CPUs{Possible: 128, Online: 2, Room: leastRoom}, cpusOf("0-127", "0-1", "0-1"))
	require.Equal(t, CPUs{Possible: 512, Online: 64, Room: 128}, cpusOf("0-511", "0-63", "0-63"))
	require.Equal(t, CPUs{Possible: 512, Online: 1, Room: 512}, cpusOf("0-511", "0", "0-511"))
}

func cpusOf(possible, online, present string) CPUs {
	var lists [3][]int
	for i, list := range []string{possible, online, present} {
		lists[i], _ = parseCPUs(list)
	}
	return countCPUs(lists[0], lists[1], lists[2])
}

// drainNow reads what is in the ring buffer.
func drainNow(t *testing.T, s *Sampler) {
	t.Helper()
	s.Drain()
	var r Record
	for err := error(nil); err != ErrDrained; { //nolint:errorlint // never wrapped
		err = s.Read(&r)
	}
}
