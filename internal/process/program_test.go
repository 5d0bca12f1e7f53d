//go:build linux

package process

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// programs remembers what processes of a program begin with.
type programs struct {
	sources  map[record.FileKey][]record.LabelSource
	presumed map[record.FileKey]bool
	refuse   bool
}

func (p *programs) SetProgram(program record.FileKey, sources []record.LabelSource, presumed bool) error {
	if p.refuse {
		return errors.New("not now")
	}
	p.sources[program], p.presumed[program] = sources, presumed
	return nil
}

func (p *programs) ForgetProgram(program record.FileKey) error {
	delete(p.sources, program)
	return nil
}

var (
	programA = record.FileKey{Inode: 7, Dev: 1}
	atOffset = func(offset int64) []record.LabelSource {
		return []record.LabelSource{{ABI: record.ABIV1, Kind: record.TLSStatic, Offset: offset}}
	}
)

func newProgramsFake(t *testing.T, with ...func(*Options)) (*fake, *programs) {
	known := &programs{sources: map[record.FileKey][]record.LabelSource{}, presumed: map[record.FileKey]bool{}}
	return newFake(t, append(with, func(o *Options) { o.Programs = known })...), known
}

// executes returns a new process that has executed a program now.
func (f *fake) executes(pid int, program record.FileKey) *Process {
	id := record.ProcessID{TGID: uint32(pid), StartNs: 5e9, ExecID: 1}
	f.advance(ms)
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: pid, TimeNs: uint64(f.now()), Program: program})
	return f.process(id)
}

// settle has something found of a process, of which it is sure then.
func (f *fake) settle(p *Process, sources []record.LabelSource, certain bool) {
	f.programs.settled(p, sources, func(record.FileKey) bool { return certain })
	f.programs.teach(p)
}

func certainly(record.FileKey) bool { return true }

// What was found of a process is taught when it has run, forked or ended after that as what it was:
// a look may have read what it has executed since.
func TestTaughtWhenProven(t *testing.T) {
	for name, tc := range map[string]struct {
		then   func(f *fake, p *Process)
		taught bool
	}{
		"nothing":             {func(*fake, *Process) {}, false},
		"it is sampled":       {func(f *fake, p *Process) { f.Sampled(p, f.now()) }, true},
		"it was sampled":      {func(f *fake, p *Process) { f.Sampled(p, f.now()-2*ms) }, false},
		"it forks":            {func(f *fake, p *Process) { f.forks(p, 2) }, true},
		"it ends":             {func(f *fake, p *Process) { f.HandleEvent(exit(p.ID())) }, true},
		"it has been told of": {func(f *fake, p *Process) { f.HandleEvent(exists(p.ID())) }, false},
		"it has executed another program": {func(f *fake, p *Process) {
			f.executesNext(p)
			f.HandleEvent(exit(record.ProcessID{TGID: p.ID().TGID, StartNs: p.ID().StartNs, ExecID: p.ID().ExecID + 1}))
		}, false},
		"it has gone without a word": {func(f *fake, p *Process) { f.notePassing(p) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, known := newProgramsFake(t)
			p := f.executes(1, programA)
			f.jobs.cancel(p)
			f.programs.settled(p, atOffset(-8), certainly)
			require.Equal(t, Refuted, p.Confirm(), "it began with nothing")
			f.advance(ms)
			tc.then(f, p)
			f.work()
			if tc.taught {
				require.Equal(t, atOffset(-8), known.sources[programA])
			} else {
				require.Empty(t, known.sources)
			}
		})
	}
}

// executesNext has a process execute something else.
func (f *fake) executesNext(p *Process) {
	id := p.ID()
	id.ExecID++
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: p.pid, TimeNs: uint64(f.now())})
}

// A look that ends after its process has ended was at it all the same.
func TestTaughtByLastLook(t *testing.T) {
	f, known := newProgramsFake(t)
	ended, replaced := f.executes(1, programA), f.executes(2, record.FileKey{Inode: 8})
	f.HandleEvent(exit(ended.ID()))
	f.executesNext(replaced)
	for _, p := range []*Process{ended, replaced} {
		f.programs.settled(p, atOffset(-8), certainly)
	}
	f.work()
	require.Equal(t, map[record.FileKey][]record.LabelSource{programA: atOffset(-8)}, known.sources)
}

// The second process of a program begins with what the first one was found to have, and
// is confirmed when that is found again.
func TestProgramIsLearnt(t *testing.T) {
	f, known := newProgramsFake(t)
	first := f.executes(1, programA)
	f.settle(first, atOffset(-8), false)
	require.Equal(t, Refuted, first.Confirm(), "it began with nothing")
	require.Equal(t, atOffset(-8), known.sources[programA])
	require.True(t, known.presumed[programA])

	second := f.executes(2, programA)
	require.Equal(t, Unconfirmed, second.Confirm())
	require.Equal(t, atOffset(-8), f.programs.presumed(second))
	f.settle(second, atOffset(-8), false)
	require.Equal(t, Confirmed, second.Confirm())

	other := f.executes(3, record.FileKey{Inode: 8})
	require.Nil(t, f.programs.presumed(other))
	f.settle(other, nil, true)
	require.Len(t, known.sources, 1, "without labels there is nothing to remember")
	f.settle(f.executes(4, record.FileKey{Inode: 9}), atOffset(0), true)
	require.False(t, known.presumed[record.FileKey{Inode: 9}], "its file alone says so")
}

// What the kernel has no room for is learnt when it has.
func TestProgramIsLearntAgain(t *testing.T) {
	f, known := newProgramsFake(t)
	known.refuse = true
	f.settle(f.executes(1, programA), atOffset(-8), false)
	require.Empty(t, known.sources)
	known.refuse = false
	f.settle(f.executes(2, programA), atOffset(-8), false)
	require.Equal(t, atOffset(-8), known.sources[programA])
}

// A process that was executed before the program was learnt has not begun with that,
// whatever is found in it.
func TestProgramLearntLater(t *testing.T) {
	f, _ := newProgramsFake(t)
	early := f.executes(1, programA)
	f.settle(f.executes(2, programA), atOffset(-8), false)
	f.settle(early, atOffset(-8), false)
	require.Equal(t, Refuted, early.Confirm())
}

// When processes of a program differ, nothing is presumed of it any more.
func TestProgramVaries(t *testing.T) {
	f, known := newProgramsFake(t)
	f.settle(f.executes(1, programA), atOffset(-8), false)
	second, third := f.executes(2, programA), f.executes(3, programA)
	f.settle(second, atOffset(-16), false)
	require.Equal(t, Refuted, second.Confirm())
	require.Empty(t, known.sources)
	require.Nil(t, f.programs.presumed(third))
	f.settle(third, atOffset(-8), false)
	require.Equal(t, Confirmed, third.Confirm(), "it did begin with that")
	f.settle(f.executes(4, programA), atOffset(-8), false)
	require.Empty(t, known.sources)
}

// A process is not judged while it may not have mapped all that it starts with.
func TestProgramStartsSlowly(t *testing.T) {
	f, known := newProgramsFake(t)
	f.settle(f.executes(1, programA), atOffset(-8), false)
	slow := f.executes(2, programA)
	f.settle(slow, nil, true)
	require.Equal(t, Unconfirmed, slow.Confirm())
	require.NotEmpty(t, known.sources)
	f.advance(int64(longestStart))
	f.settle(slow, nil, true)
	require.Equal(t, Refuted, slow.Confirm())
	require.Empty(t, known.sources)
}

// Places that depend on what a process has loaded are not presumed of another one.
func TestProgramNotPresumable(t *testing.T) {
	f, known := newProgramsFake(t)
	inTable := []record.LabelSource{{ABI: record.ABIV1, Kind: record.TLSDTVGlibc, Module: 2}}
	f.settle(f.executes(1, programA), inTable, false)
	f.settle(f.executes(2, record.FileKey{Inode: 8}), []record.LabelSource{{ABI: record.ABIThreadContextNodeJS}}, false)
	require.Empty(t, known.sources)
}

// Programs that are remembered are bounded.
func TestProgramsBounded(t *testing.T) {
	f, known := newProgramsFake(t)
	of := func(i int) record.FileKey { return record.FileKey{Inode: uint64(i)} }
	tell := func(i int, uid uint32) {
		p := f.executes(i, of(i))
		p.info.Store(&Info{Loaded: true, UID: uid})
		p.uid.Store(uid)
		f.settle(p, atOffset(-8), false)
		f.advance(1)
	}
	for i := 1; i <= 10; i++ {
		tell(i, 2000)
	}
	const many = record.MaxPrograms + 5
	for i := 11; i <= many; i++ {
		tell(i, 1000)
	}
	require.Len(t, known.sources, record.MaxPrograms)
	require.Len(t, f.programs.sources, record.MaxPrograms)
	for i := 1; i <= many; i++ {
		spared := i > 10 && i <= 15 // the first of who has most
		require.Equal(t, !spared, f.programs.sources[of(i)] != nil, i)
		_, told := known.sources[of(i)]
		require.Equal(t, !spared, told, i)
	}
}

// A process that has just begun is looked at again soon when it maps something, an older
// one less often.
func TestYoungProcess(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	p := f.executes(1, programA)
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1})
	require.Zero(t, f.work(), "it is about to be read as a whole")
	f.advance(int64(execSettle))
	require.Equal(t, 1, f.work())
	for range 10 {
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1})
		f.advance(ms)
		require.Equal(t, 1, f.work())
	}
	f.advance(int64(young))
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1})
	f.work()
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1})
	f.advance(ms)
	require.Zero(t, f.work())
	require.GreaterOrEqual(t, p.notBeforeNs-f.now(), int64(10*time.Millisecond))
}

// A process of a program whose processes have had no label sources is read late, when it has
// been sampled or lives; what it maps until then is no reason.
func TestPlainProgramIsReadLate(t *testing.T) {
	f := newFake(t)
	execute := func(pid int) (*Process, bool) {
		f.image(pid, 500, "/bin/one")
		p := f.executes(pid, programA)
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: pid})
		f.advance(int64(execSettle))
		return p, f.work() == 1
	}
	for pid := range enoughWithout {
		_, read := execute(pid + 1)
		require.True(t, read, "it is not known yet")
	}
	lives, read := execute(11)
	require.False(t, read)
	f.advance(int64(plainSettle - execSettle))
	require.Equal(t, 1, f.work())
	require.True(t, lives.Info().Loaded)

	sampled, read := execute(12)
	require.False(t, read)
	f.HandleEvent(record.Event{Kind: record.EventSampled, Process: sampled.ID()})
	require.Equal(t, 1, f.work())
	require.True(t, sampled.Info().Loaded)
	f.HandleEvent(record.Event{Kind: record.EventSampled, Process: sampled.ID()})
	require.Zero(t, f.work(), "it has been read")
	early, _ := execute(21)
	f.Lookup(early.ID(), 21, nobody, nil)
	require.Equal(t, 1, f.work(), "its sample came first")

	grows, _ := execute(22)
	f.advance(int64(young))
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 22})
	require.Equal(t, 1, f.work(), "it maps more than what it starts with")
	require.True(t, grows.Info().Loaded)

	ended, _ := execute(13)
	f.HandleEvent(record.Event{Kind: record.EventExit, Process: ended.ID()})
	f.advance(int64(plainSettle))
	require.Zero(t, f.work(), "it costs nothing")

	f.programs.noteWithout(lives, atOffset(-8)) // a library was loaded later
	for pid := range enoughWithout + 1 {
		_, read = execute(14 + pid)
		require.True(t, read, "others may have it too")
	}
}

// A process that begins with all its label sources, and needs nothing but them, is read as late.
func TestProgramIsReadLate(t *testing.T) {
	golang := []record.LabelSource{{ABI: record.ABIGo, Kind: record.TLSStatic, Offset: -8}}
	for name, tc := range map[string]struct {
		sources []record.LabelSource
		certain bool
		want    time.Duration
	}{
		"Go":           {golang, true, plainSettle},
		"Go, presumed": {golang, false, execSettle},
		"a context":    {[]record.LabelSource{{ABI: record.ABIThreadContext, Kind: record.TLSStatic}}, true, execSettle},
		"Go and v1":    {append(atOffset(-16), golang...), true, execSettle},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newProgramsFake(t)
			first := f.executes(1, programA)
			require.EqualValues(t, execSettle, first.dueNs-f.now(), "nothing is known yet")
			f.settle(first, tc.sources, tc.certain)
			require.EqualValues(t, tc.want, f.executes(2, programA).dueNs-f.now())
			f.settle(f.executes(3, programA), atOffset(-24), tc.certain)
			require.EqualValues(t, execSettle, f.executes(4, programA).dueNs-f.now(), "they vary")
		})
	}
}

// What leaves the CPU has samples that tell of no process that it is sampled: one with labels is read at once.
func TestOffCPUIsNotReadLate(t *testing.T) {
	f, _ := newProgramsFake(t, func(o *Options) { o.OffCPU = true })
	golang := []record.LabelSource{{ABI: record.ABIGo, Kind: record.TLSStatic, Offset: -8}}
	f.settle(f.executes(1, programA), golang, true)
	require.EqualValues(t, execSettle, f.executes(2, programA).dueNs-f.now())
}

// A process that was sampled before its exec was told is read at once: what was told of it then may have kept
// out what it begins with.
func TestSampledBeforeExecIsNotReadLate(t *testing.T) {
	f, _ := newProgramsFake(t)
	golang := []record.LabelSource{{ABI: record.ABIGo, Kind: record.TLSStatic, Offset: -8}}
	f.settle(f.executes(1, programA), golang, true)
	f.Lookup(record.ProcessID{TGID: 2, StartNs: 5e9, ExecID: 1}, 2, nobody, nil)
	require.LessOrEqual(t, f.executes(2, programA).dueNs, f.now()+int64(execSettle))
}

// The kernel is told of programs without label sources, as long as that holds.
func TestPlainProgramIsTold(t *testing.T) {
	f, known := newProgramsFake(t)
	ends := func(pid int, program record.FileKey) {
		p := f.executes(pid, program)
		f.HandleEvent(record.Event{Kind: record.EventExit, Process: p.ID()})
	}
	for pid := range enoughWithout {
		require.NotContains(t, known.sources, programA)
		ends(pid+1, programA)
	}
	require.Contains(t, known.sources, programA)
	require.Empty(t, known.sources[programA])
	has := f.executes(11, programA)
	f.settle(has, []record.LabelSource{{ABI: record.ABIV1, Kind: record.TLSDTVGlibc, Module: 2}}, false)
	f.programs.noteWithout(has, atOffset(-8))
	require.NotContains(t, known.sources, programA, "this one has some, others may have")

	other := record.FileKey{Inode: 8}
	for pid := range enoughWithout {
		ends(pid+21, other)
	}
	learnt := f.executes(31, other)
	f.settle(learnt, atOffset(-8), true)
	f.programs.noteWithout(learnt, atOffset(-8))
	require.Equal(t, atOffset(-8), known.sources[other], "its processes begin with them")

	third := record.FileKey{Inode: 9}
	for pid := range enoughWithout {
		ends(pid+41, third)
	}
	require.Contains(t, known.sources, third)
	for i := range maxWithout {
		f.programs.without[record.FileKey{Inode: uint64(i + 100)}] = 1
	}
	ends(51, record.FileKey{Inode: 10})
	require.NotContains(t, known.sources, third, "who is remembered anew is told anew")
}

// One process says no more of its program the more often it is read.
func TestOneProcessIsNoRule(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	f.executes(1, programA)
	for range enoughWithout {
		f.advance(int64(young))
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1})
		require.Equal(t, 1, f.work())
	}
	f.image(2, 500, "/bin/one")
	f.executes(2, programA)
	f.advance(int64(execSettle))
	require.Equal(t, 1, f.work())
}

// What is mapped before a look at a process begins is seen by it; what is mapped meanwhile, or
// later, is looked at again.
func TestMappedBeforeLook(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	p := f.executes(1, programA)
	f.advance(int64(time.Second)) // it is not young any more
	mapped := func(ns int64) {
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1, TimeNs: uint64(ns)})
		f.advance(int64(time.Second))
	}
	began := f.now()
	require.Equal(t, 1, f.work())
	mapped(began - int64(clockSkew))
	require.Zero(t, f.work(), "it has been seen")
	mapped(began - int64(clockSkew) + 1)
	require.Equal(t, 1, f.work(), "the clocks may differ by that")
	mapped(0)
	require.Equal(t, 1, f.work(), "nobody knows when")

	look := func(tellAt func(began int64) int64) {
		mapped(f.now())
		next, todo := f.next()
		require.Same(t, p, next)
		require.True(t, f.begin(&f.worker, p, todo))
		began = f.now()
		f.run(p, todo, &f.scratch)
		mapped(tellAt(began))
		f.done(p)
		f.advance(int64(time.Second))
	}
	look(func(began int64) int64 { return began - int64(clockSkew) })
	require.Zero(t, f.work(), "it was told late")
	look(func(began int64) int64 { return began })
	require.Equal(t, 1, f.work(), "it was mapped while the look went on")
	require.Zero(t, f.work())
}

// A look that has failed has seen nothing.
func TestMappedBeforeFailure(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	f.executes(1, programA)
	f.advance(int64(time.Second))
	f.write(1, "maps", "nothing of the kind\n")
	mapped := uint64(f.now() - int64(clockSkew))
	require.Equal(t, 1, f.work())
	require.NotZero(t, f.Stats().LoadErrors)
	f.image(1, 500, "/bin/one")
	f.advance(int64(time.Second))
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 1, TimeNs: mapped})
	require.Equal(t, 1, f.work())
}

// Nobody is woken for what has ended by the last of events that are read together, and no alarm is set.
func TestEventsTogether(t *testing.T) {
	f := newFake(t)
	begun := func(pid int) record.Event {
		return record.Event{Kind: record.EventFork, Process: record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, PID: pid}
	}
	ended := begun(1)
	ended.Kind = record.EventExit
	f.HandleEvents([]record.Event{begun(1), ended})
	require.Zero(t, f.alarm.sets)
	f.HandleEvents([]record.Event{begun(2), begun(1), ended})
	require.Equal(t, forkSettle, f.alarm.after)
	require.Equal(t, 1, f.alarm.sets)
	ended.Process.TGID = 2
	f.HandleEvents([]record.Event{ended})
	require.Zero(t, f.alarm.after, "there is nothing to wait for")
	f.alarm.sets = 0
	f.HandleEvents([]record.Event{begun(3), execAt(record.ProcessID{TGID: 4, StartNs: 5e9}, f.now(), "/bin/four")})
	require.Equal(t, execSettle, f.alarm.after)
	require.Equal(t, 1, f.alarm.sets, "for the one that is due first")
	require.Empty(t, f.jobs.wake)
}

// A worker is woken for what is due, and by the alarm for what will be next, and for nothing else.
func TestWoken(t *testing.T) {
	f := newFake(t)
	woken := func() bool {
		select {
		case <-f.jobs.wake:
			return true
		default:
			return false
		}
	}
	idle := func() {
		p, _ := f.next()
		require.Nil(t, p)
	}
	fork := func(pid int) {
		f.HandleEvent(record.Event{Kind: record.EventFork, Process: record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, PID: pid})
	}
	fork(1)
	require.Equal(t, forkSettle, f.alarm.after)
	f.advance(ms)
	fork(2)
	require.Equal(t, forkSettle, f.alarm.after, "it is due later")
	f.HandleEvent(record.Event{Kind: record.EventExit, Process: record.ProcessID{TGID: 1, StartNs: 5e9}})
	require.Equal(t, forkSettle, f.alarm.after, "from now on: the second is the next one")
	f.executes(3, programA)
	require.Equal(t, execSettle, f.alarm.after, "it is due earlier")
	require.False(t, woken())
	f.Lookup(record.ProcessID{TGID: 2, StartNs: 5e9}, 2, nobody, nil)
	require.True(t, woken(), "it is urgent")
	p, _ := f.next()
	require.EqualValues(t, 2, p.ID().TGID)
	require.False(t, woken(), "the other one is not due")
	f.advance(int64(execSettle))
	f.image(3, 500, "/bin/one")
	fork(4)
	require.True(t, woken(), "it is due, whenever the alarm comes")
	p, _ = f.next()
	require.EqualValues(t, 3, p.ID().TGID)
	idle()
	require.Equal(t, forkSettle, f.alarm.after, "the last one")
}

// An alarm that has come is set again for what is due later.
func TestAlarmComesAgain(t *testing.T) {
	f := newFake(t)
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: record.ProcessID{TGID: 1, StartNs: 5e9}, PID: 1})
	f.alarm.after = 0
	f.alarmed() // a little early
	require.Equal(t, forkSettle, f.alarm.after)
	require.Empty(t, f.jobs.wake)
	f.advance(int64(forkSettle))
	f.alarmed()
	require.Len(t, f.jobs.wake, 1)
}

// What ends before anything can be read of it is like what has nothing.
func TestBriefProgramIsReadLate(t *testing.T) {
	f := newFake(t)
	for pid := range enoughWithout {
		p := f.executes(pid+1, programA)
		f.HandleEvent(record.Event{Kind: record.EventExit, Process: p.ID()})
	}
	f.image(11, 500, "/bin/one")
	f.executes(11, programA)
	f.advance(int64(execSettle))
	require.Zero(t, f.work())
	f.advance(int64(plainSettle - execSettle))
	require.Equal(t, 1, f.work())
}

// Programs that have no label sources are bounded.
func TestWithoutBounded(t *testing.T) {
	f := newFake(t)
	for i := range maxWithout + 1 {
		p := f.executes(i+1, record.FileKey{Inode: uint64(i + 1)})
		f.HandleEvent(record.Event{Kind: record.EventExit, Process: p.ID()})
	}
	require.Len(t, f.programs.without, 1)
	for i := range maxWithout - 1 {
		f.programs.without[record.FileKey{Inode: uint64(i + 1)}] = 1
	}
	p := f.executes(1, record.FileKey{Inode: 1})
	f.programs.noteWithout(p, atOffset(-8))
	require.Len(t, f.programs.without, maxWithout, "it was one of them")
}

// What a forked child maps before it execs is told before the exec, and is another image's.
func TestForkedChildMaps(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	f.HandleEvent(exists(record.ProcessID{TGID: 1, StartNs: 5e9}))
	f.work()
	f.image(2, 500, "/bin/one")
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: record.ProcessID{TGID: 2, StartNs: 5e9}, Parent: record.ProcessID{TGID: 1, StartNs: 5e9}, PID: 2})
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 2})
	require.Zero(t, f.work())
	f.advance(int64(forkSettle))
	require.Equal(t, 1, f.work())
}

// Processes that the PID namespace does not show are let go when events were lost, and
// enter again when they are sampled.
func TestEventsLost(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	hidden := record.ProcessID{TGID: 43, StartNs: 1}
	f.Lookup(hidden, 0, nobody, []byte("hidden"))
	f.remove(42)
	f.HandleEvent(record.Event{Kind: record.EventLost})
	f.advance(int64(lostSpread))
	f.work()
	f.EndInterval()
	f.EndInterval()
	require.Zero(t, f.Stats().Processes)
	require.NotZero(t, f.Lookup(hidden, 0, nobody, []byte("hidden")).Handle())
}

// An event that is read late does not make the look at its process late.
func TestLateEvent(t *testing.T) {
	f := newFake(t)
	f.image(1, 500, "/bin/one")
	f.advance(int64(time.Second))
	execNs := f.now()
	f.advance(int64(execSettle) / 2)
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: record.ProcessID{TGID: 1, StartNs: 5e9, ExecID: 1}, PID: 1, TimeNs: uint64(execNs), Program: programA})
	require.Zero(t, f.work())
	f.advance(int64(execSettle) / 2)
	require.Equal(t, 1, f.work())
}

// The clock is the kernel's, by which the events are told.
func TestMonotonic(t *testing.T) {
	now := monotonic()
	for range 3 {
		before := budget.Clock(unix.CLOCK_MONOTONIC)
		told := now()
		after := budget.Clock(unix.CLOCK_MONOTONIC)
		require.GreaterOrEqual(t, told, before-int64(time.Millisecond))
		require.LessOrEqual(t, told, after+int64(time.Millisecond))
		time.Sleep(time.Millisecond)
	}
}
