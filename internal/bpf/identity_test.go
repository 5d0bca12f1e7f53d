//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A record says whose process it was: the user, not the group.
func TestRecordUser(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	pid := startAs(t, floodUser, spin)
	readUntil(t, s, func(r *Record) bool {
		if r.PID != uint32(pid) || string(r.Comm) != "sh" { // before, it is a copy of the test
			return false
		}
		require.EqualValues(t, floodUser, r.UID)
		return true
	})
}

// Whoever has mounted an overlay, and acts for a thread that reads there: the record's user is the thread's.
func TestRecordUserInOverlay(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lower", "file"), make([]byte, 8<<20), 0o644))
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	err := unix.Mount("overlay", merged, "overlay", 0, options)
	if errors.Is(err, unix.ENODEV) {
		return // the kernel has no overlayfs
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Unmount(merged, unix.MNT_DETACH) })
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Start())
	// By a name that no other program of this machine has.
	const name = "overlay-cat"
	cat, err := exec.LookPath("cat")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(cat, filepath.Join(dir, name)))
	startAs(t, floodUser, "while :; do "+filepath.Join(dir, name)+" "+merged+"/file >/dev/null; done")
	n := 0
	readUntil(t, s, func(r *Record) bool {
		if string(r.Comm) != name || len(r.KernelFrames) == 0 {
			return false
		}
		require.EqualValues(t, floodUser, r.UID)
		n++
		return n > 50
	})
}

// A record says on which CPU it was taken.
func TestRecordCPU(t *testing.T) {
	cpus, err := readCPUs(onlineCPUsPath)
	require.NoError(t, err)
	last := cpus[len(cpus)-1]
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "labels-1")
	pin(t, tgt.pid, last)
	require.NoError(t, s.Start())
	readUntil(t, s, func(r *Record) bool {
		if r.PID == tgt.pid {
			require.EqualValues(t, last, r.CPU)
		}
		return r.PID == tgt.pid
	})
}

// pin lets a process run on one CPU only.
func pin(t *testing.T, pid uint32, cpu int) {
	t.Helper()
	only := unix.CPUSet{}
	only.Set(cpu)
	require.NoError(t, unix.SchedSetaffinity(int(pid), &only))
}

// The labels of one process are not those of the next one on the same CPU.
func TestLabelsOfNextProcess(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	labelled, other := startTarget(t, program, "labels-1"), startTarget(t, program, "labels-1")
	pin(t, labelled.pid, 0)
	pin(t, other.pid, 0)
	source := record.LabelSource{ABI: record.ABIV1, Offset: labelled.offsetV1}
	require.NoError(t, s.SetLabelSources(identify(t, s, labelled.pid), []record.LabelSource{source}))
	require.NoError(t, s.Start())
	followed, last := 0, uint32(0)
	readUntil(t, s, func(r *Record) bool {
		if r.CPU != 0 {
			return false
		}
		switch r.PID {
		case labelled.pid:
			require.NotEmpty(t, r.Labels)
		case other.pid:
			require.Empty(t, r.Labels)
			if last == labelled.pid {
				followed++
			}
		}
		last = r.PID
		return followed == samplesPerState
	})
}

// Threads of the kernel are told from others, in samples and in events.
func TestKernelThreads(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: MaxSamplesPerSecond, RingBufferBytes: 1 << 20})
	ofKernel := map[uint32]bool{} // by the process's number on the host
	require.NoError(t, s.Scan(func(ev record.Event) {
		if ev.PID == 0 {
			return
		}
		_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", ev.PID)) // what has no memory has no program
		ofKernel[ev.Process.TGID] = ev.KernelThread
		if err == nil {
			require.False(t, ev.KernelThread, ev.PID)
		}
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", ev.PID)); err == nil && string(comm) == "kthreadd\n" {
			require.True(t, ev.KernelThread)
		}
	}))
	require.Contains(t, slices.Collect(maps.Values(ofKernel)), true)
	require.NoError(t, s.Start())
	stop := make(chan struct{})
	var freed sync.WaitGroup
	freed.Go(func() { // maps are freed by threads of the kernel
		for {
			select {
			case <-stop:
				return
			default:
			}
			m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4096, MaxEntries: 1000})
			if err == nil {
				_ = m.Close()
			}
		}
	})
	defer freed.Wait()
	defer close(stop)
	seen := map[bool]int{}
	readUntil(t, s, func(r *Record) bool {
		is, known := ofKernel[r.Process.TGID]
		if !known || r.Process.ExecID == 0 && !is {
			return false
		}
		require.Equal(t, is, r.KernelThread, "%s", r.Comm)
		seen[is]++
		return seen[true] > 0 && seen[false] > 0
	})
}

// A scan visits each process once, however many threads it has.
func TestScan(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	tgt := startTarget(t, program, "thread")
	visits := 0
	require.NoError(t, s.Scan(func(ev record.Event) {
		require.Equal(t, record.EventExists, ev.Kind)
		require.NotZero(t, ev.TimeNs)
		if ev.PID == int(tgt.pid) {
			visits++
		}
	}))
	require.Equal(t, 1, visits)
}

// A thread that is not the first of its process has labels and a number of its own, and
// the identity of the process.
func TestRecordThread(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "thread")
	id := identify(t, s, tgt.pid)
	require.NoError(t, s.SetLabelSources(id, []record.LabelSource{{ABI: record.ABIV1, Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		require.Equal(t, id, r.Process)
		if r.TID == tgt.pid { // the first thread, which waits
			return false
		}
		require.Equal(t, "k0=v0", show(labels.Decode(nil, r.Labels).Set))
		require.NotEqual(t, r.Process.TGID, header(r.raw).Thread)
		seen++
		return seen == samplesPerState
	})
}

// Threads that begin and end are no processes that do.
func TestThreadsAreNoProcesses(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	tgt := startTarget(t, program, "thread-ended")
	require.Eventually(t, func() bool { // who joins it goes on before it is told
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", tgt.pid))
		return err == nil && len(threads) == 1
	}, time.Minute, time.Millisecond)
	require.NoError(t, syscall.Kill(int(tgt.pid), syscall.SIGTERM))
	awaitState(t, int(tgt.pid), "Z")
	behind := exec.Command("/bin/true") // its events come behind all of the target's
	require.NoError(t, behind.Run())
	var told []record.EventKind
	for ev := (record.Event{}); ev.Kind != record.EventExit || ev.PID != behind.Process.Pid; {
		require.NoError(t, readEvent(s, &ev))
		if ev.PID == int(tgt.pid) {
			told = append(told, ev.Kind)
		}
	}
	require.Equal(t, []record.EventKind{record.EventFork, record.EventExec, record.EventExit}, told)
}

// A thread that ends has no labels and no user stack any more: its memory may be another
// thread's by then.
func TestEndingThreads(t *testing.T) {
	// The kernel gives up the thread's locks when it has marked the task, and the memory is still there:
	// mm_release in kernel/fork.c, which some kernels have inlined in do_exit.
	inExit, inWake := kernelFunctions(t, "do_exit"), kernelFunctions(t, "do_futex", "futex_wake")
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "ending-threads")
	require.NoError(t, s.SetLabelSources(identify(t, s, tgt.pid), []record.LabelSource{{ABI: record.ABIV1, Offset: tgt.offsetV1}}))
	require.NoError(t, s.Start())
	ending, alive := 0, 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid || r.TID == tgt.pid {
			return false
		}
		if slices.ContainsFunc(r.KernelFrames, inExit) && slices.ContainsFunc(r.KernelFrames, inWake) {
			require.Empty(t, r.Labels)
			require.Empty(t, r.UserFrames)
			ending++
		} else if len(r.Labels) > 0 {
			alive++
		}
		return ending >= 10*samplesPerState && alive > 0
	})
}

// kernelFunctions returns whether an address is in one of some functions, of which the kernel has one
// at least.
func kernelFunctions(t *testing.T, names ...string) (in func(addr uint64) bool) {
	t.Helper()
	b, err := os.ReadFile("/proc/kallsyms")
	require.NoError(t, err)
	var starts, wanted []uint64
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		addr, err := strconv.ParseUint(fields[0], 16, 64)
		require.NoError(t, err)
		starts = append(starts, addr)
		if slices.Contains(names, fields[2]) {
			wanted = append(wanted, addr)
		}
	}
	require.NotEmpty(t, wanted, "the kernel does not tell where %v are", names)
	slices.Sort(starts)
	starts = slices.Compact(starts)
	return func(addr uint64) bool {
		i, _ := slices.BinarySearch(starts, addr+1)
		return i > 0 && slices.Contains(wanted, starts[i-1])
	}
}
