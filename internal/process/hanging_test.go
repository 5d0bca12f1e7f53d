//go:build linux

package process

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// owned writes the /proc files of a process of a user, in a container.
func (f *fake) owned(pid int, uid uint32, container string) record.ProcessID {
	f.t.Helper()
	f.image(pid, 500, "/bin/some")
	f.write(pid, "status", fmt.Sprintf("Uid:\t%d\t0\t0\t0\nNSpid:\t%d\n", uid, pid))
	if container != "" {
		f.write(pid, "cgroup", "0::/docker/"+container+"\n")
	}
	id := record.ProcessID{TGID: uint32(pid), StartNs: 5e9}
	f.HandleEvent(exists(id))
	return id
}

const (
	hostile  = 65534
	harmless = 1000
)

// Processes that never answer whoever reads them delay nobody but their user.
func TestHangingProcesses(t *testing.T) {
	answer := make(chan struct{})
	f := newFake(t, func(o *Options) {
		o.Now = nil
		o.RescanInterval = quiet
		o.memory = func(pid int) tlsresolve.Memory {
			if pid <= 24 {
				<-answer
			}
			return nil
		}
	})
	for pid := 1; pid <= 24; pid++ {
		f.owned(pid, hostile, "")
	}
	f.Table = runTable(t, f.opts)
	defer close(answer)
	for pid := 1; pid <= 24; pid++ {
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	for pid := 100; pid < 104; pid++ {
		loaded(t, f.Table, exists(f.owned(pid, harmless, "")))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	require.LessOrEqual(t, f.hanging.late, maxOwnerLate+2, "one of the others may be late for a moment")
}

// Whose a process is, is read of it as well, and may be all that hangs.
func TestOwnersThatHang(t *testing.T) {
	const hanging = 4
	f := newFake(t, func(o *Options) { o.Now, o.RescanInterval = nil, quiet })
	var fifos []string
	for pid := 1; pid <= hanging; pid++ {
		f.owned(pid, hostile, "")
		path := filepath.Join(f.root, strconv.Itoa(pid), "status")
		require.NoError(t, os.Remove(path))
		require.NoError(t, unix.Mkfifo(path, 0o600))
		fifos = append(fifos, path)
	}
	f.Table = runTable(t, f.opts)
	t.Cleanup(func() { // before the table's
		for _, path := range fifos {
			answer, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			require.NoError(t, os.Remove(path))
			require.NoError(t, answer.Close())
		}
	})
	for pid := 1; pid <= hanging; pid++ {
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	for pid := 100; pid < 104; pid++ {
		loaded(t, f.Table, exists(f.owned(pid, harmless, "")))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	require.GreaterOrEqual(t, f.hanging.late, f.opts.Workers)
}

// Who was replaced while it found out whose a process is does not go on to look at it.
func TestLateOwner(t *testing.T) {
	f := newFake(t)
	f.owned(42, hostile, "")
	f.advance(int64(time.Second))
	path := filepath.Join(f.root, "42", "status")
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	w := &worker{alarm: func(time.Duration) {}}
	p, todo := f.next()
	begun := make(chan bool)
	go func() { begun <- f.begin(w, p, todo) }()
	eventually(t, "it is looked at", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return w.process == p
	})
	f.mu.Lock()
	w.began = time.Now().Add(-lateAfter)
	f.mu.Unlock()
	require.True(t, f.overdue(w))
	answer, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = answer.WriteString("Uid:\t65534\t0\t0\t0\n")
	require.NoError(t, err)
	require.False(t, <-begun)
	require.NoError(t, answer.Close())
	require.Equal(t, jobQueued, p.state)
	require.Zero(t, f.hanging.late)
}

// A process that waits for looks at those of who is not known waits no more when its user is.
func TestWaitsForNobody(t *testing.T) {
	f := newFake(t)
	for pid := 1; pid <= 3; pid++ {
		f.owned(pid, harmless, "")
	}
	f.advance(int64(time.Second))
	f.mu.Lock()
	u := f.hanging.of(nobody)
	u.running, u.late = 2, 1
	f.mu.Unlock()
	require.Nil(t, f.look())
	p := f.process(record.ProcessID{TGID: 1, StartNs: 5e9})
	require.Equal(t, jobWaiting, p.state)
	f.Lookup(p.id, 1, harmless, nil)
	require.Equal(t, jobQueued, p.state)
	require.Empty(t, u.waiting)
}

// look has a worker take the next process.
func (f *fake) look() *worker {
	f.t.Helper()
	w := &worker{alarm: func(time.Duration) {}}
	p, todo := f.next()
	if p == nil || !f.begin(w, p, todo) {
		return nil
	}
	return w
}

// late lets a look be late, by so much.
func (f *fake) late(w *worker, by time.Duration) (replaced bool) {
	w.began = time.Now().Add(-by)
	return f.overdue(w)
}

// notYet is by how much a look is late that is not, however long the machine keeps the test waiting.
const notYet = -time.Hour

// How long looks take is watched when no worker is left for another process, or from time to
// time. Alarms count from when a look began.
func TestWatch(t *testing.T) {
	f := newFake(t, func(o *Options) { o.Workers = 2 })
	for pid := 1; pid <= 3; pid++ {
		f.owned(pid, harmless, "")
	}
	f.owned(4, hostile, "")
	f.advance(int64(time.Second))
	alarms := map[*worker]time.Duration{}
	begin := func() *worker {
		w := &worker{}
		w.alarm = func(after time.Duration) { alarms[w] = after }
		p, todo := f.next()
		require.NotNil(t, p)
		require.True(t, f.begin(w, p, todo))
		return w
	}
	first := begin()
	require.Empty(t, alarms, "the other worker is there")
	first.began = time.Now().Add(-time.Hour)
	before := time.Now()
	second := begin()
	require.Len(t, alarms, 2)
	require.Zero(t, alarms[first])
	require.LessOrEqual(t, alarms[second], lateAfter)
	require.GreaterOrEqual(t, alarms[second], max(lateAfter-time.Since(before), 0))

	require.True(t, f.overdue(first))
	f.Table.done(second, second.process)
	clear(alarms)
	third := begin()
	require.Empty(t, alarms, "one is replaced, one is free again")
	f.hanging.watch()
	require.Len(t, alarms, 1)
	require.Contains(t, alarms, third)

	// One that is set stays so. If it was for an earlier look, it is set again while nobody is left.
	clear(alarms)
	f.hanging.watch()
	require.Empty(t, alarms)
	require.False(t, f.late(third, notYet))
	require.Empty(t, alarms)
	begin()
	require.Len(t, alarms, 2)
	clear(alarms)
	before = time.Now()
	require.False(t, f.late(third, notYet))
	require.Len(t, alarms, 1)
	require.LessOrEqual(t, alarms[third], lateAfter-notYet)
	require.GreaterOrEqual(t, alarms[third], lateAfter-notYet-time.Since(before))
}

// What a process waits for is watched, also while a worker is left.
func TestWaitedForIsWatched(t *testing.T) {
	f := newFake(t, func(o *Options) { o.Workers = 4 })
	for pid := 1; pid <= 3; pid++ {
		f.owned(pid, hostile, "")
	}
	f.advance(int64(time.Second))
	require.True(t, f.late(f.look(), lateAfter))
	second := f.look()
	alarms := 0
	second.alarm, second.alarmed = func(time.Duration) { alarms++ }, false
	require.Nil(t, f.look())
	require.Equal(t, 1, alarms)
	require.False(t, f.late(second, notYet), "the alarm was for an earlier look")
	require.Equal(t, 2, alarms)
}

// While one look at a user's processes is late, the others come one at a time, up to a
// number for each container.
func TestHangingQuota(t *testing.T) {
	f := newFake(t)
	const a, b = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	for pid := 1; pid <= 2*maxOwnerLate; pid++ {
		f.owned(pid, hostile, a)
	}
	f.advance(int64(time.Second))
	first, second := f.look(), f.look()
	require.NotNil(t, second, "nothing is late")
	require.False(t, f.late(first, notYet))
	require.True(t, f.late(first, lateAfter))
	require.False(t, f.late(first, lateAfter), "it has been replaced")
	require.Nil(t, f.look(), "another one of the user's is looked at")
	var late []*worker
	for range maxOwnerLate - 1 {
		require.True(t, f.late(second, lateAfter))
		late = append(late, second)
		second = f.look()
	}
	require.Nil(t, second)
	require.Equal(t, maxOwnerLate, f.hanging.late)

	f.owned(50, hostile, b)
	f.owned(51, harmless, "")
	f.advance(int64(time.Second))
	var got []int
	for p, todo := f.next(); p != nil; p, todo = f.next() {
		if f.begin(&worker{alarm: first.alarm}, p, todo) {
			got = append(got, p.pid)
		}
	}
	require.Equal(t, []int{50, 51}, got, "another container, another user")

	f.Table.done(late[0], late[0].process)
	f.finish(f.process(record.ProcessID{TGID: uint32(maxOwnerLate + 1), StartNs: 5e9}))
	require.Nil(t, f.look(), "the other container's comes first")
	w := &worker{alarm: first.alarm, process: f.process(record.ProcessID{TGID: 50, StartNs: 5e9}), owner: executable.Owner{UID: hostile, Container: b}}
	f.Table.done(w, w.process)
	require.NotNil(t, f.look(), "one has answered")
}

// All that reads a process is watched, and waits for its user's turn.
func TestAllReadingIsWatched(t *testing.T) {
	for _, w := range []work{workLoad, workReread, workUnwind, workContext, workNamed, workFunctions} {
		f := newFake(t)
		f.owned(42, hostile, "")
		f.advance(int64(time.Second))
		p, _ := f.next()
		f.jobs.cancel(p)
		p.state, p.work = jobIdle, 0
		f.jobs.schedule(p, w, urgent)
		looking := f.look()
		require.NotNil(t, looking, w)
		require.Same(t, p, looking.process, w)
		require.True(t, f.late(looking, lateAfter), w)
	}
}

// What hangs for long is left alone, whatever it runs next, and its name is told.
func TestQuarantine(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	f := newFake(t, func(o *Options) { o.Logger = zap.New(core) })
	f.owned(42, hostile, "")
	f.advance(int64(time.Second))
	w := f.look()
	require.NotNil(t, w)
	require.True(t, f.late(w, lateAfter))
	w.tid.Store(math.MaxInt32) // no thread that runs
	require.False(t, f.late(w, hungAfter))
	require.Equal(t, 1, f.Stats().Hanging)
	require.EqualValues(t, 1, f.Stats().Stuck)
	told := logs.All()
	require.Len(t, told, 1)
	require.EqualValues(t, 42, told[0].ContextMap()["pid"])
	require.EqualValues(t, hostile, told[0].ContextMap()["uid"])
	left := &workers{t: f.Table, all: map[*worker]struct{}{w: {}, {}: {}}}
	require.Equal(t, []int{42}, left.looksAt())

	id := record.ProcessID{TGID: 42, StartNs: 5e9, ExecID: 1}
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: 42, TimeNs: uint64(f.now())})
	f.advance(int64(time.Hour))
	require.Zero(t, f.work(), "it has not answered")
	f.Table.done(w, w.process)
	require.Zero(t, f.Stats().Hanging)
	require.Zero(t, f.work(), "it has only just answered")
	f.advance(int64(quarantine) + 1)
	require.Equal(t, 1, f.work())
	require.True(t, f.process(id).Info().Loaded)
}

// None joins the workers that are waited for: "WaitGroup misuse" ends the collector.
func TestNoWorkerJoinsAtEnd(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := &workers{t: f.Table, ctx: ctx, all: map[*worker]struct{}{}}
	c.hire()
	gone := c.end()
	c.hire() // as an alarm does that has come just before
	c.mu.Lock()
	hired := len(c.all)
	c.mu.Unlock()
	cancel()
	<-gone
	require.Equal(t, 1, hired)
}

// A look that hangs when Run ends is named by Run, and not once more by its alarm.
func TestHangsAtEnd(t *testing.T) {
	f := newFake(t)
	f.owned(42, hostile, "")
	f.advance(int64(time.Second))
	w := f.look()
	require.NotNil(t, w)
	f.ending.Store(true)
	w.alarm = func(time.Duration) { t.Error("it is watched") }
	require.False(t, f.late(w, hungAfter))
	require.Zero(t, f.Stats().Stuck)
}

// What was published of a process that ends when a worker has just taken it is taken back in time, also
// where the process or its user has to wait.
func TestEndsWhenTaken(t *testing.T) {
	for name, wait := range map[string]func(f *fake, p *Process){
		"nothing": func(*fake, *Process) {},
		"process": func(_ *fake, p *Process) { p.quarantinedNs = math.MaxInt64 },
		"user": func(f *fake, _ *Process) {
			f.owned(1, hostile, "")
			f.advance(int64(time.Second))
			require.True(f.t, f.late(f.look(), lateAfter))
			f.owned(2, hostile, "")
			f.advance(int64(time.Second))
			require.NotNil(f.t, f.look())
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			id := f.owned(42, hostile, "")
			f.advance(int64(time.Second))
			require.Equal(t, 1, f.work())
			p := f.process(id)
			wait(f, p)
			f.jobs.schedule(p, workReread, urgent)
			taken, todo := f.next()
			require.Same(t, p, taken)
			f.HandleEvent(exit(id))
			require.False(t, f.begin(&f.worker, p, todo))
			require.Equal(t, 1, f.takeBack())
			require.True(t, f.published.forgotten(id))
			require.Equal(t, jobIdle, p.state)
			require.Zero(t, f.forgetting)
		})
	}
}

// What a process that ends then was to teach is taught all the same.
func TestTeachesWhenTaken(t *testing.T) {
	f := newFake(t)
	id := f.owned(42, hostile, "")
	f.advance(int64(time.Second))
	p, _ := f.next()
	f.HandleEvent(exit(id))
	require.False(t, f.begin(&f.worker, p, workReread|workTeach))
	_, todo := f.next()
	require.Equal(t, workTeach, todo)
}

// Looks that compute for long delay nobody but their user, for longer than a moment: their workers are replaced
// by what they take of a CPU, and others of one owner wait until these are fewer.
func TestCostlyLooks(t *testing.T) {
	thread := make(chan int)
	defer close(thread)
	go func() {
		runtime.LockOSThread() // ends with it
		thread <- procfs.Thread()
		<-thread
	}()
	computes := <-thread
	require.Eventually(t, func() bool { return !procfs.Blocked(computes) }, time.Minute, time.Millisecond)
	var took time.Duration
	f := newFake(t, func(o *Options) { o.threadTime = func(int) int64 { return int64(time.Hour + took) } })
	for pid := 1; pid <= 6; pid++ {
		f.owned(pid, hostile, "")
	}
	f.advance(int64(time.Second))
	run := func() *worker {
		w := f.look()
		require.NotNil(t, w)
		w.tid.Store(int32(computes))
		f.startMeter(w, workLoad)
		return w
	}
	first, second := run(), run()
	took = costlyAfter - 1
	f.advance(int64(meterEvery))
	require.False(t, f.late(first, lateAfter), "it may have waited for a CPU")
	took = costlyAfter
	f.advance(int64(meterEvery))
	require.True(t, f.late(first, lateAfter))
	require.True(t, f.late(second, lateAfter))
	for range 4 {
		require.Nil(t, f.look(), "too many of the user's compute")
	}

	f.owned(50, harmless, "")
	f.advance(int64(time.Second))
	other := run()
	require.EqualValues(t, harmless, other.owner.UID)
	require.False(t, f.late(other, lateAfter), "what others took is not its own")
	took += costlyAfter
	f.stopMeter(other)
	f.Table.done(other, other.process)
	f.jobs.schedule(f.process(numbered(50)), workReread, urgent)
	next, todo := f.next()
	require.EqualValues(t, 50, next.pid)
	require.True(t, f.begin(other, next, todo), "whose it is, is known")
	require.False(t, f.late(other, lateAfter), "nor is what the look before took")
	f.Table.done(other, other.process)

	f.stopMeter(first)
	f.Table.done(first, first.process)
	third := run()
	require.False(t, f.late(third, lateAfter))
	require.Nil(t, f.look(), "one at a time")
	took += costlyAfter
	f.advance(int64(meterEvery))
	require.True(t, f.late(third, lateAfter))
	require.Nil(t, f.look(), "too many again")

	require.False(t, f.late(third, slowAfter))
	require.NotNil(t, f.look(), "it may go on for long")
	f.stopMeter(third)
	f.Table.done(third, third.process)
	f.stopMeter(second)
	f.Table.done(second, second.process)
	require.Empty(t, f.hanging.of(hostile).costly)
	require.Zero(t, f.hanging.late)
}
