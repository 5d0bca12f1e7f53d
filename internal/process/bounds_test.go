//go:build linux

package process

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func TestLookupAllocates(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	comm := []byte("comm")
	p := f.Lookup(image1, 42, nobody, comm)
	f.work()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if f.Lookup(image1, 42, nobody, comm) != p || p.Info().Mapping(0x10000) == nil {
			panic("another process")
		}
	}))
}

func BenchmarkLookup(b *testing.B) {
	table := NewTable(Options{Publisher: newRecorder()})
	comm := []byte("comm")
	ids := make([]record.ProcessID, 1024)
	for i := range ids {
		ids[i] = record.ProcessID{TGID: uint32(i + 1), StartNs: uint64(i)}
		table.Lookup(ids[i], 0, nobody, comm)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		table.Lookup(ids[i%len(ids)], 0, nobody, comm)
	}
}

func TestMaxProcesses(t *testing.T) {
	f := newFake(t, func(o *Options) { o.MaxProcesses = 2 })
	for pid := 1; pid <= 2; pid++ {
		f.lives(pid, uint32(pid))
		require.True(t, f.enters(pid))
	}
	for _, kind := range []record.EventKind{record.EventExists, record.EventExec, record.EventFork} {
		f.HandleEvent(record.Event{Kind: kind, Process: record.ProcessID{TGID: 3, StartNs: 1}, PID: 3})
	}
	other := f.Lookup(record.ProcessID{TGID: 4, StartNs: 1}, 4, nobody, []byte("x"))
	require.Zero(t, other.Handle())
	require.Equal(t, &Info{}, other.Info())
	got, ok := f.Process(0)
	require.True(t, ok)
	require.Same(t, other, got)
	require.EqualValues(t, 4, f.Stats().Refused)
	require.Equal(t, 2, f.Stats().Processes)

	f.HandleEvent(exit(numbered(1)))
	f.EndInterval()
	f.EndInterval()
	require.NotZero(t, f.Lookup(record.ProcessID{TGID: 4, StartNs: 1}, 4, nobody, nil).Handle(), "there is room again")
}

// A process without a sample makes room when none can come any more; one with samples, also one
// that came after its end, when two intervals have ended, where it is not known what has been read.
func TestUnsampled(t *testing.T) {
	f := newFake(t)
	id := func(pid uint32) record.ProcessID { return record.ProcessID{TGID: pid, StartNs: 1} }
	const plain, sampled, late = 1, 2, 3
	for _, pid := range []uint32{plain, sampled, late} {
		f.HandleEvent(exists(id(pid)))
	}
	f.Lookup(id(sampled), sampled, nobody, nil)
	for _, pid := range []uint32{plain, sampled, late} {
		f.HandleEvent(exit(id(pid)))
	}
	f.advance(int64(sampleDelay) - 1)
	f.HandleEvent(exists(id(4)))
	require.Contains(t, f.byID, id(plain), "a sample may come")
	require.NotZero(t, f.Lookup(id(late), late, nobody, nil).Handle())
	f.advance(1)
	f.HandleEvent(exists(id(5)))
	require.NotContains(t, f.byID, id(plain))
	for range 2 {
		require.Contains(t, f.byID, id(sampled), "its samples may not be in a batch")
		require.Contains(t, f.byID, id(late), "its samples may not be in a batch")
		f.EndInterval()
	}
	require.NotContains(t, f.byID, id(sampled))
	require.NotContains(t, f.byID, id(late))
	require.Equal(t, 2, f.Stats().Processes)
}

// Once later samples have been read, none can come.
func TestUnsampledOnceRead(t *testing.T) {
	var read int64
	f := newFake(t, func(o *Options) { o.SamplesRead = func() int64 { return read } })
	id := func(pid uint32) record.ProcessID { return record.ProcessID{TGID: pid, StartNs: 1} }
	f.HandleEvent(exists(id(1)))
	f.HandleEvent(exit(id(1)))
	ended := f.now()
	f.advance(int64(submitDelay) + 1)
	read = ended + int64(submitDelay) - 1
	f.HandleEvent(exists(id(2)))
	require.Contains(t, f.byID, id(1), "a sample may come")
	read++
	f.HandleEvent(exists(id(3)))
	require.NotContains(t, f.byID, id(1))
	// Reading may stand still.
	f.HandleEvent(exit(id(3)))
	f.advance(int64(sampleDelay))
	f.HandleEvent(exists(id(4)))
	require.NotContains(t, f.byID, id(3))
}

// A process that has exited still runs in the kernel. Where samples are seldom, it is there for the first
// of them.
func TestUnsampledWhereSamplesAreSeldom(t *testing.T) {
	var read int64
	const period = time.Second / 9
	f := newFake(t, func(o *Options) {
		o.SamplesRead = func() int64 { return read }
		o.SamplePeriod = period
	})
	id := func(pid uint32) record.ProcessID { return record.ProcessID{TGID: pid, StartNs: 1} }
	f.HandleEvent(exists(id(1)))
	f.HandleEvent(exit(id(1)))
	ended := f.now()
	f.advance(int64(time.Second))
	read = ended + int64(exitPeriods*period) - 1
	f.HandleEvent(exists(id(2)))
	require.Contains(t, f.byID, id(1), "a sample may come")
	read++
	f.HandleEvent(exists(id(3)))
	require.NotContains(t, f.byID, id(1))
}

// Sampled processes that have ended make room once their samples are in batches, which hold what is known of them, however
// long an interval is.
func TestSampledOnceRead(t *testing.T) {
	var read int64
	f := newFake(t, func(o *Options) {
		o.MaxProcesses = 4
		o.SamplesRead = func() int64 { return read }
	})
	batch := map[uint64]*Process{}
	for pid := 1; pid <= 4; pid++ {
		f.image(pid, 500, "/bin/one")
		p := f.Lookup(numbered(pid), pid, nobody, nil)
		f.work()
		f.Hold(p)
		batch[p.Handle()] = p
	}
	for pid := 1; pid <= 4; pid++ {
		f.HandleEvent(exit(numbered(pid)))
	}
	ended := f.now()
	fork := func(pid int) {
		f.HandleEvent(record.Event{Kind: record.EventFork, Process: numbered(pid), PID: pid, TimeNs: uint64(f.now())})
	}
	f.advance(int64(sampleDelay) + 1)
	read = ended + int64(sampleDelay) - 1
	fork(5)
	f.knows(1, 2, 3, 4) // a sample may come, or wait for a name
	require.EqualValues(t, 1, f.Stats().Refused)
	read++
	fork(6)
	f.knows(6)
	require.EqualValues(t, 1, f.Stats().Refused)
	require.Empty(t, f.exited)
	for handle, p := range batch {
		got, ok := f.Process(handle)
		require.True(t, ok)
		require.Same(t, p, got)
		require.Equal(t, "one", got.Info().Name)
		require.NotNil(t, got.current.info, "its files are used")
	}
	f.Release(batch)
	require.Len(t, f.byHandle, 1)
}

// A sampled process that still runs in the kernel where samples are seldom is there for the last of them; and where
// samples are not read any more, it goes with intervals.
func TestSampledWhereSamplesAreSeldom(t *testing.T) {
	var read int64
	const period = 3 * time.Second / 2
	f := newFake(t, func(o *Options) {
		o.SamplesRead = func() int64 { return read }
		o.SamplePeriod = period
	})
	for pid := 1; pid <= 2; pid++ {
		require.True(t, f.enters(pid))
		f.HandleEvent(exit(numbered(pid)))
		f.advance(1)
	}
	read = f.now() - 2 + int64(exitPeriods*period) - 1
	require.True(t, f.enters(3))
	f.knows(1, 2, 3)
	read++
	require.True(t, f.enters(4))
	f.knows(2, 3, 4)
	f.advance(int64(time.Hour))
	require.True(t, f.enters(5))
	f.knows(2, 3, 4, 5)
	f.EndInterval()
	f.EndInterval()
	f.knows(3, 4, 5)
}

// TestExecStorm replaces one image after the other: none may hold on to all before it.
func TestExecStorm(t *testing.T) {
	f := newFake(t)
	for i := range 1000 {
		f.HandleEvent(execAt(record.ProcessID{TGID: 42, StartNs: 5e9, ExecID: uint64(i)}, f.now(), "x"))
		if i%10 == 0 {
			f.EndInterval()
		}
	}
	require.Less(t, f.Stats().Processes, 40)
	chain := 0
	for p := f.newest[42]; p != nil; p = p.older {
		chain++
	}
	require.LessOrEqual(t, chain, 2)
	require.Len(t, f.jobs.queue, 1, "only the newest is to be read")
}

// TestMappingStorm sends many events: the process is read at a bounded rate.
func TestMappingStorm(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	for range 1000 {
		f.advance(ms)
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42})
		f.work()
	}
	require.InDelta(t, 1000/int64(rereadGap/1e6), int64(f.Stats().Rereads), 2)
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 4711})
	require.Zero(t, f.work(), "an unknown process")
}

// TestCostlyProcess takes long to read: it gets a bounded share of a worker, and more
// of one when it is the machine that is busy.
func TestCostlyProcess(t *testing.T) {
	const cost = 100 * ms
	gap := func(busy bool) int64 {
		f := newFake(t)
		f.now = func() int64 { return f.clock.Add(cost / 4) } // every look at the clock takes time
		if !busy {
			f.opts.cpuTime = f.clock.Load
		}
		f.image(42, 500, "/bin/one")
		f.HandleEvent(exists(image1))
		f.advance(int64(time.Second))
		f.work()
		p := f.process(image1)
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42})
		return p.dueNs - f.clock.Load()
	}
	require.Greater(t, gap(false), 20*cost)
	require.Greater(t, gap(true), 4*cost)
	require.Less(t, gap(true), gap(false)/3)
}

// TestMappingsLost looks at all processes, but not all at once nor too often.
func TestMappingsLost(t *testing.T) {
	f := newFake(t)
	for pid := 1; pid <= 100; pid++ {
		f.image(pid, 500, "/bin/one")
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	require.Equal(t, 100, f.work())
	f.advance(int64(time.Second))
	for range 10 {
		f.HandleEvent(record.Event{Kind: record.EventMappingsLost})
		f.advance(int64(lostSpread) / 10)
		require.InDelta(t, 10, f.work(), 2)
	}
	require.EqualValues(t, 100, f.Stats().Rereads)
	for _, again := range []int{100, 0} { // more was lost during the first search, nothing since
		f.searchLost()
		f.advance(int64(lostSpread))
		require.Equal(t, again, f.work())
	}
}

// Many processes are looked at in a longer time: who maps much may have mappings lost all the time.
func TestMappingsLostOfMany(t *testing.T) {
	f := newFake(t)
	const n = 2000
	for pid := 1; pid <= n; pid++ {
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	began := f.now()
	f.HandleEvent(record.Event{Kind: record.EventMappingsLost})
	require.Equal(t, began+int64(n*lostEach), f.lostBeforeNs)
	for pid := n + 1; pid <= 10*n; pid++ {
		f.HandleEvent(exists(record.ProcessID{TGID: uint32(pid), StartNs: 5e9}))
	}
	f.advance(int64(n * lostEach))
	f.HandleEvent(record.Event{Kind: record.EventMappingsLost})
	require.Equal(t, f.now()+int64(maxLostSpread), f.lostBeforeNs)
}

func TestManyExecMappings(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	var maps strings.Builder
	const code = 3 * maxGeneratedMappings
	for i := range code { // generated code with gaps
		fmt.Fprintf(&maps, "%x-%x rwxp 00000000 00:00 0 \n", i*0x2000, i*0x2000+0x1000)
	}
	base := code * 0x2000
	for i := range 100 { // generated code in one piece
		fmt.Fprintf(&maps, "%x-%x r-xp 00000000 00:00 0 [anon:code]\n", base+i*0x1000, base+(i+1)*0x1000)
	}
	last := base + 1<<30
	fmt.Fprintf(&maps, "%x-%x r-xp 00000000 00:01 7 /lib/last.so\n", last, last+0x1000)
	f.write(42, "maps", maps.String())
	p := f.Lookup(image1, 42, nobody, nil)
	f.work()
	info := p.Info()
	require.Len(t, info.Mappings, maxGeneratedMappings+1)
	require.Equal(t, "/lib/last.so", info.Mapping(uint64(last)).Path, "libraries are kept")
	require.EqualValues(t, 1, f.Stats().MappingsCut)

	f.write(42, "maps", strings.Join(strings.SplitAfter(maps.String(), "\n")[code:], ""))
	f.jobs.schedule(p, workReread, urgent)
	f.work()
	require.Len(t, p.Info().Mappings, 2)
	require.NotNil(t, p.Info().Mapping(uint64(base+99*0x1000)))
}

// Code that is generated in shared memory crowds out no library either, nor do the names of that memory.
func TestGeneratedInSharedMemory(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	var maps strings.Builder
	const pairs = 5000
	name := "/memfd:" + strings.Repeat("n", 249) + " (deleted)"
	for i := range pairs { // as .NET has it: a page to run, the same page to write
		fmt.Fprintf(&maps, "%x-%x r-xs %08x 00:01 5 %s\n", i*0x2000, i*0x2000+0x1000, i*0x1000, name)
		fmt.Fprintf(&maps, "%x-%x rw-s %08x 00:01 5 %s\n", i*0x2000+0x1000, i*0x2000+0x2000, i*0x1000, name)
	}
	const base = 1 << 30
	for i := range maxFileMappings { // a library of which parts were protected otherwise
		fmt.Fprintf(&maps, "%x-%x r-xp %08x 00:01 6 /lib/one.so\n", base+i*0x2000, base+i*0x2000+0x1000, i*0x2000)
	}
	const last = base + 1<<30
	fmt.Fprintf(&maps, "%x-%x r-xp 00000000 00:01 7 /lib/last.so\n", last, last+0x1000)
	f.write(42, "maps", maps.String())
	p := f.Lookup(image1, 42, nobody, nil)
	f.work()
	info := p.Info()
	require.Equal(t, maxFileMappings+maxGeneratedMappings+maxFileMappings+1, len(info.Mappings)) // without thousands of them in a message
	require.Equal(t, "/lib/one.so", info.Mapping(base+(maxFileMappings-1)*0x2000).Path)
	require.Equal(t, "/lib/last.so", info.Mapping(last).Path, "libraries are kept")
	require.EqualValues(t, 1, f.Stats().MappingsCut)
}

func TestBadProcFiles(t *testing.T) {
	for name, text := range map[string]string{"maps": "nonsense\n", "status": "x", "stat": "x"} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.image(42, 500, "/bin/one")
			f.write(42, name, text)
			p := f.Lookup(image1, 42, nobody, []byte("comm"))
			f.work()
			require.Equal(t, &Info{PID: 42, Name: "comm"}, p.Info())
			require.EqualValues(t, 1, f.Stats().LoadErrors)
			require.False(t, p.exited)
		})
	}
}

// What becomes due sooner than it was comes before what it stood behind.
func TestSoonerComesFirst(t *testing.T) {
	f := newFake(t)
	first, second := &Process{}, &Process{}
	f.jobs.schedule(first, workReread, f.now()+10*ms)
	f.jobs.schedule(second, workReread, f.now()+20*ms)
	f.jobs.schedule(second, workContext, f.now()+5*ms)
	f.jobs.schedule(first, workContext, f.now()+30*ms)
	f.advance(5 * ms)
	p, w := f.next()
	require.Same(t, second, p)
	require.Equal(t, workReread|workContext, w)
	p, _ = f.next()
	require.Nil(t, p)
	require.EqualValues(t, 5*ms, f.jobs.alarmNs-f.now(), "when a worker is woken for the other one")
}

// BenchmarkLoad reads this process as a whole, BenchmarkReread when nothing has changed.
func BenchmarkLoad(b *testing.B)   { benchmarkWork(b, workLoad) }
func BenchmarkReread(b *testing.B) { benchmarkWork(b, workReread) }

func benchmarkWork(b *testing.B, w work) {
	pid := os.Getpid()
	stat, err := procfs.FS{}.Stat(pid)
	require.NoError(b, err)
	table := NewTable(Options{Publisher: newRecorder()})
	defer table.files.Close()
	p := table.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: stat.StartTicks * 1e7}, pid, nobody, nil)
	var s scratch
	table.run(p, workLoad, &s)
	require.True(b, p.Info().Loaded)
	b.ReportAllocs()
	for b.Loop() {
		table.run(p, w, &s)
	}
}
