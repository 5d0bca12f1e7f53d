//go:build linux && (amd64 || arm64)

package bpf

import (
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A process begins with the label sources of its program, which its samples call presumed
// until it has got its own.
func TestProgramSources(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	program := buildTarget(t)
	require.NoError(t, s.Follow())
	first := startTarget(t, program, "labels-1")
	var ev record.Event
	for ev.Kind != record.EventExec || ev.PID != int(first.pid) {
		require.NoError(t, readEvent(s, &ev))
	}
	require.NotZero(t, ev.Program)
	sources := []record.LabelSource{{ABI: record.ABIV1, Offset: first.offsetV1}}
	require.NoError(t, s.Start())
	for _, presumed := range []bool{true, false} {
		require.NoError(t, s.SetProgram(ev.Program, sources, presumed))
		next := startTarget(t, program, "labels-1")
		readUntil(t, s, func(r *Record) bool {
			if r.PID != next.pid || len(r.Labels) <= 16 {
				return false
			}
			require.Equal(t, presumed, r.Presumed)
			return true
		})
		require.NoError(t, s.SetLabelSources(identify(t, s, next.pid), sources))
		readUntil(t, s, func(r *Record) bool { return r.PID == next.pid && len(r.Labels) > 16 && !r.Presumed })
	}
	require.NoError(t, s.ForgetProgram(ev.Program))
	require.NoError(t, s.ForgetProgram(ev.Program), "again")
	readUnlabelled(t, s, startTarget(t, program, "labels-1"))

	// Without sources it begins with nothing.
	require.NoError(t, s.SetProgram(ev.Program, nil, false))
	readUnlabelled(t, s, startTarget(t, program, "labels-1"))
	require.Error(t, s.SetProgram(ev.Program, make([]record.LabelSource, record.MaxLabelSources+1), true))
}

// readUnlabelled reads samples of a program that publishes labels now, none of which has any.
func readUnlabelled(t *testing.T, s *Sampler, p target) {
	t.Helper()
	const enough = 10
	publishes, n := monotonicNs(t), 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID == p.pid {
			require.Empty(t, r.Labels)
			if r.TimeNs > publishes {
				n++
			}
		}
		return n == enough
	})
}

// beforeExec has a process wait, which run has execute a program that user space has told such sources of. It returns who
// that will be.
func beforeExec(t *testing.T, s *Sampler, sources []record.LabelSource) (next record.ProcessID, run func()) {
	t.Helper()
	needFileNames(t, s)
	program := buildTarget(t)
	f, err := os.Open(program)
	require.NoError(t, err)
	defer f.Close()
	key, err := s.NameFile(f)
	require.NoError(t, err)
	require.NoError(t, s.SetProgram(key, sources, false))
	require.NoError(t, s.Follow())
	cmd := exec.Command("/bin/sh", "-c", "read go; exec "+program+" labels-1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	next = awaitExec(t, s, cmd.Process.Pid)
	next.ExecID++
	return next, func() {
		t.Helper()
		require.NoError(t, in.Close())
		require.Equal(t, next, awaitExec(t, s, cmd.Process.Pid))
	}
}

// What user space has set of a process while it executes a program stays: the program's sources are not taken back
// with it.
func TestProgramSourcesMeanwhile(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	next, run := beforeExec(t, s, []record.LabelSource{{ABI: record.ABIV1, Offset: 8}})
	entry := record.ProcessEntry{Labelled: true}
	sealProcess(&next, &entry)
	require.NoError(t, s.objs.Processes.Put(&next, &entry))
	run()
	require.Contains(t, keysOf[record.LabelSources](t, s.objs.LabelSources), next)
	require.NoError(t, s.Forget(next))
}

// The first sample of a process that user space has not looked at is told, once, whatever it
// began with, and whether labels are read or not.
func TestFirstSampleIsTold(t *testing.T) {
	for name, config := range map[string]Config{"labels": {}, "no labels": {SkipLabels: true}, "frame pointers": {FramePointersOnly: true}} {
		t.Run(name, func(t *testing.T) { testFirstSample(t, config) })
	}
}

func testFirstSample(t *testing.T, config Config) {
	t.Helper()
	config.SamplesPerSecond, config.RingBufferBytes = 997, 1<<20
	s := newSampler(t, config)
	require.NoError(t, s.Follow())
	program := buildTarget(t)
	known, first := startTarget(t, program, "labels-1"), startTarget(t, program, "labels-1")
	if config.FramePointersOnly { // nobody tells mappings
		require.NoError(t, s.SetLabelSources(identify(t, s, known.pid), nil))
	} else {
		require.NoError(t, s.SetUnwindMappings(identify(t, s, known.pid), nil, 0))
	}
	require.NoError(t, s.Start())
	var mu sync.Mutex
	told := map[record.ProcessID]int{}
	go func() {
		for {
			var ev record.Event
			if readEvent(s, &ev) != nil {
				return
			}
			mu.Lock()
			switch ev.Kind {
			case record.EventExec:
				told[ev.Process] = 0 // a sample during the exec
			case record.EventSampled:
				told[ev.Process]++
			}
			mu.Unlock()
		}
	}()
	// requireTold: a process was told of so often that has been sampled many times.
	requireTold := func(want int, pid uint32) {
		t.Helper()
		id, samples := identify(t, s, pid), 0
		readUntil(t, s, func(r *Record) bool {
			if r.PID == pid {
				samples++
			}
			return samples == 10
		})
		n := func() int {
			mu.Lock()
			defer mu.Unlock()
			return told[id]
		}
		require.Eventually(t, func() bool { return n() >= want }, time.Minute, time.Millisecond)
		require.LessOrEqual(t, n(), 2*want, "once more if the exec's event was just being written")
	}
	requireTold(1, first.pid)
	requireTold(0, known.pid)
	needFileNames(t, s)
	f, err := os.Open(program)
	require.NoError(t, err)
	defer f.Close()
	key, err := s.NameFile(f)
	require.NoError(t, err)
	for _, sources := range [][]record.LabelSource{{{ABI: record.ABIV1, Offset: first.offsetV1}}, nil} {
		require.NoError(t, s.SetProgram(key, sources, false))
		for range 2 { // one that is sampled while it is executed has nothing yet
			requireTold(1, startTarget(t, program, "labels-1").pid)
		}
	}
}

// A sample during an exec is told before anybody knows of the new program: the first one after it is told as well.
func TestSampledDuringExec(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	next, run := beforeExec(t, s, nil)
	require.NoError(t, s.objs.Sampled.Put(&next, uint8(1)))
	require.NoError(t, s.Start())
	run()
	executed, samples := skipOlder(t, s), 0
	readUntil(t, s, func(r *Record) bool {
		if r.Process == next && r.TimeNs > executed {
			samples++
		}
		return samples == 2 // the first one has been told when the second is taken
	})
	other := exec.Command("/bin/true")
	require.NoError(t, other.Run())
	told := false
	for ev := (record.Event{}); ev.PID != other.Process.Pid; {
		require.NoError(t, readEvent(s, &ev))
		told = told || ev.Kind == record.EventSampled && ev.Process == next
	}
	require.True(t, told)
}

// That a process is sampled while it ends, and was not before, is told as well: else it would have passed unseen.
func TestSampledAtItsEnd(t *testing.T) {
	const attempts = 20 // what it frees may take less than the time between two samples
	for range attempts {
		told := samplesToldAtEnd(t)
		require.LessOrEqual(t, told, 1)
		if told == 1 {
			return
		}
	}
	t.Fatalf("none of %d ends was told", attempts)
}

func samplesToldAtEnd(t *testing.T) (told int) {
	t.Helper()
	s := newSampler(t, Config{SamplesPerSecond: 4999, RingBufferBytes: 1 << 20})
	require.NoError(t, s.Follow())
	// It waits, and has much to free.
	const script = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do x=$x$x; done; echo; read go"
	cmd := exec.Command("/bin/sh", "-c", script)
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	id := awaitExec(t, s, cmd.Process.Pid)
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	time.Sleep(10 * time.Millisecond) // until it waits
	require.NoError(t, s.Start())
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	other := exec.Command("/bin/true")
	require.NoError(t, other.Run())
	for ev := (record.Event{}); ev.PID != other.Process.Pid; {
		require.NoError(t, readEvent(s, &ev))
		if ev.Kind == record.EventSampled && ev.Process == id {
			told++
		}
	}
	require.NoError(t, s.Close())
	return told
}

// Who needs no stacks has none walked.
func TestSkipStacks(t *testing.T) {
	for _, skip := range []bool{false, true} {
		s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20, SkipStacks: skip})
		target := startTarget(t, buildTarget(t), "labels-1")
		require.NoError(t, s.Start())
		samples, frames := 0, 0
		readUntil(t, s, func(r *Record) bool {
			frames += len(r.KernelFrames) + len(r.UserFrames)
			if r.PID == target.pid {
				samples++
			}
			return samples == 10
		})
		require.Equal(t, skip, frames == 0)
	}
}

// execsOf makes a sampler whose events wait for ever if they can, and a program that is told to
// have no labels. The channel has the PIDs of those that execute anything.
func execsOf(t *testing.T) (s *Sampler, program string, execs <-chan int) {
	t.Helper()
	s = newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, eventDelay: time.Hour})
	needFileNames(t, s)
	require.NoError(t, s.Follow())
	program = buildTarget(t)
	f, err := os.Open(program)
	require.NoError(t, err)
	defer f.Close()
	key, err := s.NameFile(f)
	require.NoError(t, err)
	require.NoError(t, s.SetProgram(key, nil, false))
	read := make(chan int, 1000)
	go func() {
		defer close(read)
		for {
			var ev record.Event
			if readEvent(s, &ev) != nil {
				return
			}
			if ev.Kind == record.EventExec {
				read <- ev.PID
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		for range read {
		}
	})
	return s, program, read
}

// The exec of a program that has no labels does not wake the reader. What others execute
// meanwhile does: such an attempt tells nothing.
func TestPlainExecCanWait(t *testing.T) {
	_, program, execs := execsOf(t)
	const attempts = 5
	waited, woken := 0, 0
	attempt := func(t *testing.T) { // which ends its target
		for len(execs) > 0 {
			<-execs
		}
		plain := int(startTarget(t, program, "labels-1").pid)
		time.Sleep(2 * time.Millisecond)
		told, others := false, false
		for n := len(execs); n > 0; n-- {
			pid := <-execs
			told, others = told || pid == plain, others || pid != plain
		}
		switch {
		case others:
		case told:
			woken++
		default:
			waited++
		}
	}
	for late := time.Now().Add(2 * time.Minute); waited+woken < attempts && time.Now().Before(late); {
		t.Run("attempt", attempt)
		other := exec.Command("/bin/true")
		require.NoError(t, other.Run())
		for pid := 0; pid != other.Process.Pid; {
			pid = <-execs
		}
	}
	require.NotZero(t, waited+woken, "others have executed programs all the time")
	require.Greater(t, waited, woken)
}

// That of a process that user space has looked at does: it would go on to look at it.
func TestExecOfKnownProcess(t *testing.T) {
	s, program, execs := execsOf(t)
	awaitExec := func(pid int) {
		t.Helper()
		for late := time.After(time.Minute); ; {
			select {
			case got := <-execs:
				if got == pid {
					return
				}
			case <-late:
				require.Fail(t, "it is not told")
			}
		}
	}
	sh := exec.Command("/bin/sh", "-c", "read go; exec "+program+" labels-1")
	in, err := sh.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	defer func() {
		require.NoError(t, sh.Process.Kill())
		_ = sh.Wait()
	}()
	awaitExec(sh.Process.Pid)
	require.NoError(t, s.SetUnwindMappings(identify(t, s, uint32(sh.Process.Pid)), nil, 0))
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	awaitExec(sh.Process.Pid)
}
