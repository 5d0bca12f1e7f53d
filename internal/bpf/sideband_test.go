//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func readMappingEvents(s *Sampler, visit func(record.Event)) error {
	return s.ReadMappingEvents(func(events []record.Event) {
		for _, ev := range events {
			visit(ev)
		}
	})
}

// A new executable mapping is told of, with the process's PID and when that was.
func TestMappingEvents(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	seen := make(chan record.Event, 1024)
	done := make(chan error)
	go func() {
		done <- readMappingEvents(s, func(ev record.Event) {
			select {
			case seen <- ev:
			default:
			}
		})
	}()
	const skew = uint64(time.Millisecond) // of the clocks
	var before, after uint64
	maps := func() {
		if before == 0 {
			before = monotonicNs(t)
		}
		mapCode(t)
		after = monotonicNs(t)
	}
	maps()
	for ev := (record.Event{}); ev.PID != os.Getpid(); {
		select {
		case ev = <-seen:
		case <-time.After(time.Minute):
			t.Fatal("no event")
		}
		if ev.Kind == record.EventMappingsLost { // others have run many programs
			maps()
		}
		if ev.PID == os.Getpid() {
			require.GreaterOrEqual(t, ev.TimeNs+skew, before)
			require.LessOrEqual(t, ev.TimeNs, after+skew)
		}
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, ErrClosed)
	require.ErrorIs(t, s.Follow(), ErrClosed)
	require.ErrorIs(t, s.Read(&Record{}), ErrClosed)
}

// Of several mappings of a process that are told together, the last one's time is.
func TestMappingTimes(t *testing.T) { testutil.Measure(t, measureMappingTimes) }

func measureMappingTimes(t *testing.T, bounds *testutil.Bounds) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	onOneCPU(t)
	mapCode(t)
	time.Sleep(10 * time.Millisecond)
	last := monotonicNs(t)
	mapCode(t)
	events, crowded := s.sideband.drain(nil)
	require.False(bounds, crowded, "others have run programs meanwhile")
	for i := 1; i < len(events); i++ {
		require.NotEqual(t, events[i-1], record.Event{Kind: record.EventMapping, PID: events[i].PID, TimeNs: events[i-1].TimeNs}, "once for a run")
	}
	events = slices.DeleteFunc(events, func(ev record.Event) bool { return ev.PID != os.Getpid() })
	require.NotEmpty(t, events)
	require.GreaterOrEqual(t, events[len(events)-1].TimeNs+uint64(time.Millisecond), last)
}

// Of several that are told together, the first one's time is told that shows a file, if one does.
func TestMappingFileTimes(t *testing.T) { testutil.Measure(t, measureMappingFileTimes) }

func measureMappingFileTimes(t *testing.T, bounds *testutil.Bounds) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	onOneCPU(t)
	told := func() (fileNs uint64) {
		events, crowded := s.sideband.drain(nil)
		require.False(bounds, crowded, "others have run programs meanwhile")
		events = slices.DeleteFunc(events, func(ev record.Event) bool { return ev.PID != os.Getpid() })
		require.NotEmpty(t, events)
		for _, ev := range events {
			if fileNs == 0 || ev.FileNs != 0 {
				fileNs = min(fileNs-1, ev.FileNs-1) + 1 // 0 is none
			}
		}
		return fileNs
	}
	mapCode(t)
	require.Zero(t, told())

	program, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer program.Close()
	mapFile := func() {
		mem, err := unix.Mmap(int(program.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
		require.NoError(t, err)
		require.NoError(t, unix.Munmap(mem))
	}
	mapCode(t)
	time.Sleep(10 * time.Millisecond)
	before := monotonicNs(t)
	mapFile()
	after := monotonicNs(t)
	time.Sleep(maxFilesApart / 2)
	mapFile()
	mapCode(t)
	got := told()
	const skew = uint64(time.Millisecond) // of the clocks
	require.GreaterOrEqual(t, got+skew, before)
	require.LessOrEqual(t, got, after+skew)
}

// What is mapped so much later than what an event tells of that a look may be in between is told by one of its own.
func TestMappingsApart(t *testing.T) {
	ev := &record.Event{}
	require.False(t, apart(ev, 1e18), "no file yet")
	ev.FileNs = 1e9
	require.False(t, apart(ev, 1e9+uint64(maxFilesApart)))
	require.True(t, apart(ev, 1e9+uint64(maxFilesApart)+1))
}

// A ring takes no more than the kernel lets anybody have on each CPU, whatever a page is, and is a power of two.
func TestSidebandBytes(t *testing.T) {
	for page, want := range map[int]int{4 << 10: 68 << 10, 16 << 10: 80 << 10, 64 << 10: 128 << 10, 256 << 10: 512 << 10} {
		require.Equal(t, want, sidebandMapBytes(page))
		require.LessOrEqual(t, want, 512<<10+page, "kernel.perf_event_mlock_kb")
	}
}

// A ring that was filled by a good part says so, and is empty then.
func TestMappingsCrowd(t *testing.T) { testutil.Measure(t, measureMappingsCrowd) }

func measureMappingsCrowd(t *testing.T, bounds *testutil.Bounds) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	onOneCPU(t)
	for range 400 { // some 120 bytes each
		mapCode(t)
	}
	_, crowded := s.sideband.drain(nil)
	require.True(t, crowded)
	_, crowded = s.sideband.drain(nil)
	require.False(bounds, crowded, "unless others have run programs meanwhile")
}

// While mappings follow each other, the reader looks for them some times a second, and misses
// none, nor those that come after a pause.
func TestMappingBurst(t *testing.T) { testutil.Measure(t, measureMappingBurst) }

func measureMappingBurst(t *testing.T, bounds *testutil.Bounds) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	looks, told, lost := 0, make(chan uint64, 10_000), make(chan struct{}, 10_000)
	done := make(chan error)
	go func() {
		done <- s.ReadMappingEvents(func(events []record.Event) {
			looks++
			for _, ev := range events {
				switch {
				case ev.Kind == record.EventMappingsLost:
					lost <- struct{}{}
				case ev.PID == os.Getpid():
					told <- ev.TimeNs
				}
			}
		})
	}()
	const mappings, gap, most = 1000, 200 * time.Microsecond, 2 * 1000 / 4
	for range 2 {
		for range mappings {
			mapCode(t)
			for began := time.Now(); time.Since(began) < gap; {
			}
		}
		last := monotonicNs(t)
		mapCode(t)
		for ns := uint64(0); ns+uint64(time.Millisecond) < last; {
			select {
			case ns = <-told:
			case <-lost:
				require.Fail(bounds, "the reader came too late")
			case <-time.After(time.Minute):
				t.Fatal("a mapping is not told of")
			}
		}
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, ErrClosed)
	require.LessOrEqual(bounds, looks, most)
}

// onOneCPU keeps the goroutine on one CPU until the test ends, and says on which.
func onOneCPU(t *testing.T) (cpu int) {
	t.Helper()
	runtime.LockOSThread()
	var before, only unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &before))
	for !before.IsSet(cpu) {
		cpu++
	}
	only.Set(cpu)
	require.NoError(t, unix.SchedSetaffinity(0, &only))
	t.Cleanup(func() {
		require.NoError(t, unix.SchedSetaffinity(0, &before))
		runtime.UnlockOSThread()
	})
	return cpu
}

// mapCode maps something executable, and takes it away again.
func mapCode(t *testing.T) {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	require.NoError(t, unix.Munmap(mem))
}

// A reader of mappings that comes too late is told that some were lost, also where none follow, and of a process
// that has mapped many times it is told once.
func TestMappingEventsLost(t *testing.T) {
	const mappings = 10_000 // many more than there is room for
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	for range mappings {
		mapCode(t)
	}
	told := make(chan record.Event, mappings)
	done := make(chan error)
	go func() {
		done <- readMappingEvents(s, func(ev record.Event) { told <- ev })
	}()
	own := 0
	for deadline := time.After(time.Minute); ; {
		select {
		case ev := <-told:
			if ev.PID == os.Getpid() {
				own++
			}
			if ev.Kind != record.EventMappingsLost {
				continue
			}
		case <-deadline:
			t.Fatal("it is not told that mappings were lost")
		}
		break
	}
	require.Less(t, own, mappings/20)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, ErrClosed)
}

// What has found no room is told with what has, and not only before what comes next.
func TestMappingsFull(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	onOneCPU(t)
	for range 1000 { // some 120 bytes each, for 64 KiB
		mapCode(t)
	}
	told := func() bool {
		events, _ := s.sideband.drain(nil)
		return slices.ContainsFunc(events, func(ev record.Event) bool { return ev.Kind == record.EventMappingsLost })
	}
	require.True(t, told())
	mapCode(t)
	require.True(t, told(), "the kernel says it with what comes next")
	mapCode(t)
	require.False(t, told())
}

// All processes are told of that have mapped something since the reader looked last.
func TestMappingEventsOfAll(t *testing.T) { testutil.Measure(t, measureMappingEventsOfAll) }

func measureMappingEventsOfAll(t *testing.T, bounds *testutil.Bounds) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	wanted := map[uint32]bool{}
	for range 5 {
		cmd := exec.Command("/bin/true")
		require.NoError(t, cmd.Run())
		wanted[uint32(cmd.Process.Pid)] = true
	}
	told := make(chan record.Event, 10_000)
	done := make(chan error, 1)
	go func() {
		done <- readMappingEvents(s, func(ev record.Event) { told <- ev })
	}()
	for deadline := time.After(time.Minute); len(wanted) > 0; {
		select {
		case ev := <-told:
			require.NotEqual(bounds, record.EventMappingsLost, ev.Kind, "others have run programs meanwhile")
			delete(wanted, uint32(ev.PID))
		case <-deadline:
			t.Fatalf("nothing is told of %v", wanted)
		}
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-done, ErrClosed)
}
