//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// Every hit is submitted, filtered or dropped, and every submitted record is read.
func TestAccountingUnderOverflow(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 10_000, RingBufferBytes: MinRingBufferBytes})
	for range runtime.NumCPU() {
		startTarget(t, program, "labels-10")
	}
	require.NoError(t, s.Start())
	for end := time.Now().Add(time.Minute); ; {
		c, err := s.Counters()
		require.NoError(t, err)
		if c.DroppedRingFull > 1000 {
			break
		}
		require.True(t, time.Now().Before(end), "the ring buffer did not overflow: %+v", c)
		time.Sleep(50 * time.Millisecond)
	}
	records := uint64(0)
	drain(t, s, func(*Record) { records++ })
	c, err := s.Counters()
	require.NoError(t, err)
	require.NotZero(t, c.Submitted)
	require.Equal(t, c.Hits, c.Submitted+c.FilteredIdle+c.DroppedRingFull+c.DroppedUserShare+c.DroppedInternal)
	require.Equal(t, c.Submitted, records)
	time.Sleep(20 * time.Millisecond)
	after, err := s.Counters()
	require.NoError(t, err)
	require.Equal(t, c, after, "nothing runs after Stop")
}

// A record says who ran, when and where.
func TestRecordIdentity(t *testing.T) {
	program := buildTarget(t)
	s := newSampler(t, Config{SamplesPerSecond: 997, RingBufferBytes: 1 << 20})
	tgt := startTarget(t, program, "labels-1")
	id := identify(t, s, tgt.pid)
	var before unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &before))
	require.NoError(t, s.Start())
	readUntil(t, s, func(r *Record) bool {
		if r.PID != tgt.pid {
			return false
		}
		var now unix.Timespec
		require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
		require.Greater(t, int64(r.TimeNs), before.Nano())
		require.Less(t, int64(r.TimeNs), now.Nano())
		require.Equal(t, id, r.Process)
		require.Equal(t, tgt.pid, r.TID)
		require.EqualValues(t, os.Getuid(), r.UID)
		require.Less(t, int(r.CPU), runtime.NumCPU())
		require.Equal(t, "target", string(r.Comm))
		require.False(t, r.KernelThread)
		return true
	})
}

// In a PID namespace, PIDs are those of the namespace.
func TestPIDNamespace(t *testing.T) {
	testutil.RequireBPF(t)
	cmd := exec.Command("unshare", "--fork", "--pid", "--mount-proc", os.Args[0], "-test.v", "-test.run=^(TestRecordIdentity|TestLabelStates)$/^go-labels-1$")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestRecordIdentity")
	require.Contains(t, string(out), "--- PASS: TestLabelStates/go-labels-1")
}

// Fork, exec and exit of a process arrive, and exec changes its identity.
func TestProcessEvents(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec /bin/true\n"), 0o755))
	cmd := exec.Command(script)
	require.NoError(t, cmd.Start())
	pid := uint32(cmd.Process.Pid)
	require.NoError(t, cmd.Wait())
	var kinds []record.EventKind
	var ids []record.ProcessID
	var paths []string
	last := uint64(0)
	for ev := (record.Event{}); ev.Kind != record.EventExit || ev.PID != int(pid); {
		require.NoError(t, readEvent(s, &ev))
		if ev.PID != int(pid) {
			continue
		}
		require.Greater(t, ev.TimeNs, last)
		last = ev.TimeNs
		kinds, ids, paths = append(kinds, ev.Kind), append(ids, ev.Process), append(paths, ev.Path)
		if ev.Kind == record.EventFork {
			require.EqualValues(t, os.Getpid(), ev.Parent.TGID)
		}
	}
	require.Equal(t, []record.EventKind{record.EventFork, record.EventExec, record.EventExec, record.EventExit}, kinds)
	require.Equal(t, []string{"", "/bin/sh", "/bin/true", ""}, paths, "of a script, what runs it")
	require.Equal(t, ids[0].ExecID+1, ids[1].ExecID)
	require.Equal(t, ids[1].ExecID+1, ids[2].ExecID)
	require.Equal(t, ids[2], ids[3])
	require.Equal(t, ids[0].StartNs, ids[3].StartNs)
}

// A forked child is read with its parent's sources and mappings from its first sample on.
func TestForkInheritsSources(t *testing.T) {
	// The event of a process with sources cannot wait.
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, eventDelay: time.Hour})
	require.NoError(t, s.Follow())
	self := identify(t, s, uint32(os.Getpid()))
	require.NoError(t, s.SetLabelSources(self, []record.LabelSource{{ABI: 2, Offset: 4711}}))
	require.NoError(t, s.SetUnwindMappings(self, nil, 0))
	cmd := exec.Command("/bin/cat") // vfork, then exec: the entry lives in between
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	child := awaitExec(t, s, cmd.Process.Pid)
	var entry record.ProcessEntry
	key := child
	require.Error(t, s.objs.Processes.Lookup(&key, &entry), "exec makes another process")
	require.Error(t, s.objs.LabelSources.Lookup(&key, &record.LabelSources{}))
	key.ExecID--
	require.Error(t, s.objs.Processes.Lookup(&key, &entry), "and removes the old one")
	require.Error(t, s.objs.LabelSources.Lookup(&key, &record.LabelSources{}))
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())

	// A process that forks and does not exec.
	sh := exec.Command("/bin/sh", "-c", "read go; (read x); true")
	stdin, err := sh.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	parent := awaitExec(t, s, sh.Process.Pid)
	require.NoError(t, s.SetLabelSources(parent, []record.LabelSource{{ABI: 2, Offset: 42}}))
	require.NoError(t, s.SetUnwindMappings(parent, []record.UnwindMapping{{Start: 1, Limit: 2}}, 0))
	_, err = stdin.Write([]byte("\n"))
	require.NoError(t, err)
	forked := record.Event{}
	for forked.Kind != record.EventFork || forked.Parent != parent {
		require.NoError(t, readEvent(s, &forked))
	}
	key = forked.Process
	require.NoError(t, s.objs.Processes.Lookup(&key, &entry))
	require.True(t, entry.Labelled)
	require.True(t, entry.BySample)
	require.Equal(t, s.processes[parent].entry.List, entry.List)
	require.EqualValues(t, 1, entry.Mappings)
	inherited := entry
	sealProcess(&key, &entry)
	require.Equal(t, entry, inherited)
	var sources record.LabelSources
	require.NoError(t, s.objs.LabelSources.Lookup(&key, &sources))
	require.EqualValues(t, 42, sources.Source[0].Offset)
	copied := sources
	sealSources(&key, &sources)
	require.Equal(t, sources, copied)
	require.NoError(t, stdin.Close())
	require.NoError(t, sh.Wait())
	// Nothing is left of processes that are gone.
	require.Error(t, s.objs.Processes.Lookup(&key, &entry))
	require.Error(t, s.objs.LabelSources.Lookup(&key, &sources))
}

// Of a process with a language runtime that starts other programs, nothing is left of them: the map
// of runtimes has room for so many.
func TestForkOfRuntime(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	needFileNames(t, s) // as kernels do in which runtimes are walked
	require.NoError(t, s.Follow())
	sh := exec.Command("/bin/sh", "-c", "read go; for i in 1 2 3 4 5; do /bin/true; (exit 0); done; read x; true")
	stdin, err := sh.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	parent := awaitExec(t, s, sh.Process.Pid)
	require.NoError(t, s.SetRuntime(parent, record.RuntimeProcess{Kind: record.RuntimeCPython}))
	require.NoError(t, s.SetUnwindMappings(parent, []record.UnwindMapping{{Start: 1, Limit: 2}}, 0))
	_, err = stdin.Write([]byte("\n"))
	require.NoError(t, err)
	var forked []record.ProcessID
	for exited, ev := 0, (record.Event{}); exited < 10; {
		require.NoError(t, readEvent(s, &ev))
		switch {
		case ev.Kind == record.EventFork && ev.Parent == parent:
			forked = append(forked, ev.Process)
		case ev.Kind == record.EventExit && slices.ContainsFunc(forked, func(id record.ProcessID) bool { return id.TGID == ev.Process.TGID }):
			exited++
		}
	}
	require.Len(t, forked, 10)
	var left []record.ProcessID
	var id record.ProcessID
	var known record.RuntimeProcess
	for all := s.objs.Runtimes.Iterate(); all.Next(&id, &known); {
		left = append(left, id)
	}
	require.Equal(t, []record.ProcessID{parent}, left)
	// What was set of a child goes when the child is forgotten.
	child := forked[0]
	require.NoError(t, s.SetRuntime(child, known))
	require.NoError(t, s.ForgetMappings(child))
	require.ErrorIs(t, s.objs.Runtimes.Lookup(&child, &known), ebpf.ErrKeyNotExist)
	require.NoError(t, stdin.Close())
	require.NoError(t, sh.Wait())
}

// awaitExec waits until a process has another program and returns its identity. When
// Start returns, the process may not have it yet.
func awaitExec(t *testing.T, s *Sampler, pid int) record.ProcessID {
	t.Helper()
	for ev := (record.Event{}); ; {
		require.NoError(t, readEvent(s, &ev))
		if ev.Kind == record.EventExec && ev.PID == pid {
			return ev.Process
		}
	}
}

// Events that find no room are counted.
func TestEventsDropped(t *testing.T) {
	const processes = 20
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes, EventRingBytes: os.Getpagesize()})
	require.NoError(t, s.Follow())
	for range processes {
		require.NoError(t, exec.Command("/bin/true").Run())
	}
	require.NoError(t, s.Stop())
	c, err := s.Counters()
	require.NoError(t, err)
	require.NotZero(t, c.EventsDropped)
	s.events.drain()
	read := uint64(0)
	for ev := (record.Event{}); ; read++ {
		err := readEvent(s, &ev)
		if errors.Is(err, ErrDrained) {
			break
		}
		require.NoError(t, err)
	}
	require.GreaterOrEqual(t, read+c.EventsDropped, uint64(3*processes))
}

// A CPU without work gives no records, and its hits are counted.
func TestAccountingOfIdle(t *testing.T) {
	const enough = 50 // ticks of 10 ms
	s := newSampler(t, Config{SamplesPerSecond: MaxSamplesPerSecond, RingBufferBytes: 8 << 20})
	require.NoError(t, s.Start())
	// What passes until the events of all CPUs are enabled is not sampled, so it does not count.
	before := idleTicks(t)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := s.Counters()
		require.NoError(t, err)
		if c.FilteredIdle > 0 {
			break
		}
		if time.Now().After(end) { // no CPU was idle; the account is right all the same
			require.Less(t, idleTicks(t)-before, enough, "the CPUs were idle, and no hit was filtered")
			break
		}
	}
	drain(t, s, func(r *Record) { require.NotZero(t, header(r.raw).Thread, "the idle task") })
	c, err := s.Counters()
	require.NoError(t, err)
	require.Equal(t, c.Hits, c.Submitted+c.FilteredIdle+c.DroppedRingFull+c.DroppedUserShare+c.DroppedInternal)
}

// header of the record of a sample.
func header(raw []byte) *record.SampleHeader { return (*record.SampleHeader)(unsafe.Pointer(&raw[0])) }

// idleTicks of all CPUs since the host has been up.
func idleTicks(t *testing.T) (ticks int) {
	t.Helper()
	b, err := os.ReadFile("/proc/stat")
	require.NoError(t, err)
	var user, nice, system int
	_, err = fmt.Sscanf(string(b), "cpu %d %d %d %d", &user, &nice, &system, &ticks)
	require.NoError(t, err)
	return ticks
}

// A reader sleeps until there is enough to read, of all users or of one, and is woken then.
func TestWatermark(t *testing.T) {
	const ring = 1 << 20
	for name, tc := range map[string]struct {
		share  float64
		enough int
	}{"all users": {0, ring / 4}, "one user": {0.05, ring / 40}} {
		t.Run(name, func(t *testing.T) {
			s := newSampler(t, Config{
				SamplesPerSecond: MaxSamplesPerSecond, RingBufferBytes: ring, UserShare: tc.share, ReadDelay: 10 * time.Second,
			})
			startAs(t, floodUser, spin)
			require.NoError(t, s.Start())
			// Two CPUs may pass the mark together, and neither say so: the delay is for that.
			for tries := 1; ; tries++ {
				require.NoError(t, s.samples.await())
				unread := s.UnreadBytes()
				if !s.samples.idle {
					require.GreaterOrEqual(t, unread, tc.enough)
					return
				}
				require.Less(t, tries, 4, "nothing woke the reader, %d bytes are unread", unread)
				for err := error(nil); !errors.Is(err, ErrIdle); err = s.Read(&Record{}) {
					require.NoError(t, err)
				}
			}
		})
	}
}

// A reader is told that there is nothing to read, again and again; of closing it is told
// while it waits.
func TestReadIdle(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	told := make(chan error)
	go func() {
		for {
			err := s.Read(&Record{})
			told <- err
			if !errors.Is(err, ErrIdle) {
				return
			}
		}
	}()
	next := func() error {
		select {
		case err := <-told:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("the reader is told nothing")
			return nil
		}
	}
	require.ErrorIs(t, next(), ErrIdle)
	began := time.Now()
	const ticks = 5 // of which two may have come already, and the next may be about to
	for range ticks {
		require.ErrorIs(t, next(), ErrIdle)
	}
	require.Greater(t, time.Since(began), (ticks-3)*s.config.readDelay(), "it does not wait")
	require.NoError(t, s.Close())
	err := next()
	for errors.Is(err, ErrIdle) {
		err = next()
	}
	require.ErrorIs(t, err, ErrClosed)
}

// Execs are told after Stop, while the last samples are named; nothing is attached any more after Close.
func TestEventsEndWithClose(t *testing.T) {
	s := newSampler(t, Config{SamplesPerSecond: 1, RingBufferBytes: MinRingBufferBytes})
	require.NoError(t, s.Follow())
	require.NoError(t, s.Start())
	require.NoError(t, s.Stop())
	cmd := exec.Command("/bin/true")
	require.NoError(t, cmd.Run())
	s.events.drain()
	for ev := (record.Event{}); ev.Kind != record.EventExec || ev.PID != cmd.Process.Pid; {
		require.NoError(t, readEvent(s, &ev))
	}
	require.NotEmpty(t, s.lifecycle)
	of, err := s.lifecycle[0].Info()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	attached, err := link.NewFromID(of.ID)
	if err == nil {
		attached.Close()
	}
	require.ErrorIs(t, err, os.ErrNotExist)
}

func monotonicNs(t *testing.T) uint64 {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return uint64(now.Nano())
}

// readEvent reads one, and leaves others where they are.
func readEvent(s *Sampler, ev *record.Event) error {
	var one [1]record.Event
	_, err := s.ReadEvents(one[:])
	*ev = one[0]
	return err
}

// Two samplers at once see each hit of their own.
func TestTwoSamplers(t *testing.T) {
	program := buildTarget(t)
	tgt := startTarget(t, program, "labels-1")
	for range 2 {
		s := newSampler(t, Config{SamplesPerSecond: 97, RingBufferBytes: 1 << 20})
		require.NoError(t, s.Start())
		defer readUntil(t, s, func(r *Record) bool { return r.PID == tgt.pid })
	}
}
