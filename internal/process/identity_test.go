//go:build linux

package process

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func exists(id record.ProcessID) record.Event {
	return record.Event{Kind: record.EventExists, Process: id, PID: int(id.TGID)}
}
func exit(id record.ProcessID) record.Event {
	return record.Event{Kind: record.EventExit, Process: id, PID: int(id.TGID)}
}

func execAt(id record.ProcessID, ns int64, path string) record.Event {
	return record.Event{Kind: record.EventExec, Process: id, PID: int(id.TGID), TimeNs: uint64(ns), Path: path}
}

func TestLoad(t *testing.T) {
	f := newFake(t, func(o *Options) { o.CommandLineBytes = 100 })
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	require.Equal(t, 1, f.work())
	want := &Info{
		Loaded: true, PID: 42, Name: "one", Path: "/bin/one", CommandLine: []string{"/bin/one"}, UID: 1000, Cgroup: "/",
		Mappings: []executable.Mapping{{Start: 0x10000, Limit: 0x20000, Path: "[one]"}},
	}
	p := f.process(image1)
	require.Equal(t, want, p.Info())
	sources, known := f.published.of(image1)
	require.True(t, known, "that there are no sources is news too")
	require.Empty(t, sources)

	same, ok := f.Process(p.Handle())
	require.True(t, ok)
	require.Same(t, p, same)
	require.Nil(t, p.Info().Mapping(0xffff))
	require.NotNil(t, p.Info().Mapping(0x10000))
	require.NotNil(t, p.Info().Mapping(0x1ffff))
	require.Nil(t, p.Info().Mapping(0x20000))
	_, ok = p.Info().Mappings[0].Vaddr(0x10000)
	require.False(t, ok)
}

// writeOnly is a file that nobody may read, root neither.
const writeOnly = "/sys/bus/cpu/uevent"

// refuseMaps has nobody read a process's mappings, as a security module does.
func (f *fake) refuseMaps(pid int) {
	f.t.Helper()
	maps := filepath.Join(f.root, strconv.Itoa(pid), "maps")
	require.NoError(f.t, os.Remove(maps))
	require.NoError(f.t, os.Symlink(writeOnly, maps))
}

// Who a process is, is known also where its mappings may not be read. What was known of these stays.
func TestMapsRefused(t *testing.T) {
	f := newFake(t, selecting(wantsUID(1000)))
	f.image(42, 500, "/bin/one")
	f.refuseMaps(42)
	f.HandleEvent(exists(image1))
	require.Equal(t, 1, f.work())
	want := &Info{Loaded: true, PID: 42, Name: "one", Path: "/bin/one", UID: 1000, Cgroup: "/", Verdict: VerdictWanted}
	want.Mappings = []executable.Mapping{}
	require.Equal(t, want, f.process(image1).Info())
	require.EqualValues(t, 1, f.Stats().LoadErrors)

	f.image(42, 500, "/bin/one")
	f.lookAgain()
	known := f.process(image1).Info()
	require.Len(t, known.Mappings, 1)
	f.refuseMaps(42)
	f.lookAgain()
	require.Same(t, known, f.process(image1).Info())
	require.EqualValues(t, 2, f.Stats().LoadErrors)
	r := &reader{}
	r.init(f.opts)
	_, err := r.inspect(t.Context(), &subject{id: image1, pid: 42})
	require.ErrorIs(t, err, fs.ErrPermission)
}

// A program that is in memory alone has the name of its thread: the path ends with what it was before.
func TestProgramInMemory(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/memfd:runc_cloned:/proc/self/exe")
	f.write(42, "stat", "42 (runc:[2:INIT]) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 4096 1 0 0 0 0\n")
	f.HandleEvent(exists(image1))
	require.Equal(t, 1, f.work())
	require.Equal(t, "runc:[2:INIT]", f.process(image1).Info().Name)
	require.Equal(t, "/memfd:runc_cloned:/proc/self/exe", f.process(image1).Info().Path)
}

func TestUnknownProcessIsLoadedFirst(t *testing.T) {
	f := newFake(t)
	for _, pid := range []int{42, 43, 44} {
		f.image(pid, 500, "/bin/some")
	}
	f.HandleEvent(exists(record.ProcessID{TGID: 43, StartNs: 5e9}))
	f.HandleEvent(exists(record.ProcessID{TGID: 44, StartNs: 5e9}))
	p := f.Lookup(image1, 42, nobody, []byte("thread\xff"))
	require.Equal(t, &Info{PID: 42, Name: "thread\uFFFD"}, p.Info())
	second := f.Lookup(record.ProcessID{TGID: 44, StartNs: 5e9}, 44, nobody, []byte("known"))
	require.Equal(t, "known", second.Info().Name)

	for _, want := range []*Process{p, second} {
		got, w := f.next()
		require.Same(t, want, got)
		f.run(got, w, &f.scratch)
		f.done(got)
	}
	require.Equal(t, "some", p.Info().Name)
}

func TestProcessInvisible(t *testing.T) {
	f := newFake(t)
	p := f.Lookup(image1, 0, nobody, []byte("hidden"))
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: record.ProcessID{TGID: 43, StartNs: 1}})
	require.Zero(t, f.work())
	require.Equal(t, &Info{Name: "hidden"}, p.Info())
}

// What a process has begun with is taken back where its end, or its exec, had no event: no program has done it.
func TestMissedEndsAreTakenBack(t *testing.T) {
	next := image1
	next.ExecID++
	for name, tc := range map[string]struct {
		then   record.Event
		missed bool
	}{
		"end":         {exists(reused), true},
		"exec":        {exists(next), true},
		"told exec":   {record.Event{Kind: record.EventExec, Process: next, PID: 42, TimeNs: 2e9}, false},
		"same again":  {exists(image1), false},
		"child of it": {record.Event{Kind: record.EventFork, Process: numbered(43), Parent: image1, PID: 43, TimeNs: 2e9}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.image(42, 500, "/bin/x")
			f.HandleEvent(exists(image1))
			f.work()
			f.HandleEvent(tc.then)
			require.Equal(t, tc.missed, slices.Contains(f.published.running, image1))
		})
	}
}

// TestPIDReused has the PID belong to another process when it is read.
func TestPIDReused(t *testing.T) {
	f := newFake(t)
	f.image(42, 700, "/bin/new")
	f.HandleEvent(exists(image1))
	f.work()
	old := f.process(image1)
	require.False(t, old.Info().Loaded)
	require.Empty(t, old.Info().Name)
	_, known := f.published.of(image1)
	require.False(t, known)
	require.EqualValues(t, 1, f.Stats().Lost)

	p := f.Lookup(reused, 42, nobody, []byte("x"))
	require.NotEqual(t, old.Handle(), p.Handle())
	f.work()
	require.Equal(t, "new", p.Info().Name)
	require.Same(t, old, f.Lookup(image1, 42, nobody, nil), "a late sample")
	f.work()
	require.False(t, old.Info().Loaded)
}

// TestPIDReusedBetween has the PID change hands after an exit that got lost.
func TestPIDReusedBetween(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/old")
	old := f.Lookup(image1, 42, nobody, nil)
	f.work()
	f.image(42, 700, "/bin/new")
	p := f.Lookup(reused, 42, nobody, nil)
	f.work()
	require.Equal(t, "new", p.Info().Name)
	require.Equal(t, "old", old.Info().Name, "was read when it was true")
	f.takeBack()
	require.True(t, f.published.forgotten(image1))
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42})
	f.advance(int64(time.Second))
	f.work()
	require.Equal(t, "new", p.Info().Name)
	f.HandleEvent(execAt(reused, 1, "/bin/new"))
	require.Equal(t, "old", old.Info().Name, "it was not what has executed")
}

func TestTimeNamespace(t *testing.T) {
	f := newFake(t)
	f.bootOffset = 2e9
	f.image(42, 700, "/bin/one")
	p := f.Lookup(image1, 42, nobody, nil)
	f.work()
	require.True(t, p.Info().Loaded)
}

func TestExec(t *testing.T) {
	const slack = int64(execDuration)
	for name, tc := range map[string]struct {
		run  func(f *fake) // with image1 in the table, not loaded yet
		want string        // what image1 is shown as
	}{
		"read long before": {func(f *fake) {
			f.work()
			f.advance(slack + ms)
			f.HandleEvent(execAt(image2, f.now(), "/bin/two"))
		}, "one"},
		"read just before": {func(f *fake) {
			f.work()
			f.advance(slack)
			f.HandleEvent(execAt(image2, f.now(), "/bin/two"))
		}, ""},
		"read before, event late": {func(f *fake) {
			f.work()
			f.advance(slack + ms)
			at := f.now()
			f.advance(10 * slack)
			f.HandleEvent(execAt(image2, at, "/bin/two"))
		}, "one"},
		"read after, event late": {func(f *fake) {
			at := f.now()
			f.advance(slack)
			f.image(42, 500, "/bin/two")
			f.work()
			f.HandleEvent(execAt(image2, at, "/bin/two"))
		}, ""},
		"read before and again after": {func(f *fake) {
			f.work()
			f.advance(2 * slack)
			at := f.now()
			f.advance(slack)
			f.image(42, 500, "/bin/two")
			f.jobs.schedule(f.process(image1), workLoad, urgent)
			f.work()
			f.HandleEvent(execAt(image2, at, "/bin/two"))
		}, "one"},
		"read before and often after": {func(f *fake) {
			f.work()
			f.advance(2 * slack)
			at := f.now()
			f.image(42, 500, "/bin/two")
			for range 4 {
				f.advance(20 * ms)
				f.jobs.schedule(f.process(image1), workLoad, urgent)
				f.work()
			}
			f.HandleEvent(execAt(image2, at, "/bin/two"))
		}, "one"},
		"event while reading": {func(f *fake) {
			p, w := f.next()
			f.HandleEvent(execAt(image2, f.now(), "/bin/two"))
			f.advance(ms)
			f.run(p, w, &f.scratch)
			f.done(p)
		}, ""},
		"just before, with another stack": {func(f *fake) {
			f.work()
			f.advance(ms)
			f.HandleEvent(execOf(f, image2, 2))
		}, "one"},
		"just before, with the same stack": {func(f *fake) {
			f.work()
			f.advance(ms)
			f.HandleEvent(execOf(f, image2, 1))
		}, ""},
		"just before and just after, with another stack": {func(f *fake) {
			f.work()
			f.advance(20 * ms)
			at := f.now()
			f.startStack = 2
			f.image(42, 500, "/bin/two")
			f.advance(20 * ms)
			f.jobs.schedule(f.process(image1), workLoad, urgent)
			f.work()
			require.Equal(f.t, "two", f.process(image1).Info().Name)
			ev := execOf(f, image2, 2)
			ev.TimeNs = uint64(at)
			f.HandleEvent(ev)
		}, "one"},
		"event while reading, of another stack": {func(f *fake) {
			p, w := f.next()
			f.HandleEvent(execOf(f, image2, 2))
			f.advance(ms)
			f.run(p, w, &f.scratch)
			f.done(p)
		}, "one"},
		"sample of the new image before its event": {func(f *fake) {
			f.work()
			f.advance(ms)
			f.Lookup(image2, 42, nobody, nil)
		}, ""},
		"sample of the new image a second after": {func(f *fake) {
			f.work()
			f.advance(int64(time.Second)) // it may have run since
			f.Lookup(image2, 42, nobody, nil)
		}, ""},
		"sample of the new image long after": {func(f *fake) {
			f.work()
			f.advance(int64(sampleDelay) + slack + ms)
			f.Lookup(image2, 42, nobody, nil)
		}, "one"},
		"sample of the new image, then a late event that says more": {func(f *fake) {
			at := f.now()
			f.work()
			f.advance(int64(sampleDelay) + slack + ms)
			f.Lookup(image2, 42, nobody, nil)
			f.HandleEvent(execAt(image2, at, "/bin/two"))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.startStack = 1
			f.image(42, 500, "/bin/one")
			f.HandleEvent(exists(image1))
			tc.run(f)
			f.image(42, 500, "/bin/two")
			f.advance(int64(execSettle))
			f.work()
			require.Equal(t, tc.want, f.process(image1).Info().Name)
			require.Equal(t, "two", f.process(image2).Info().Name)
			f.takeBack()
			require.NotContains(t, f.published.sources, image1)
			require.Contains(t, f.published.sources, image2)
		})
	}
}

// The stack of an image tells nothing of one that was there before it.
func TestExecOfImageInBetween(t *testing.T) {
	f := newFake(t)
	f.startStack = 1
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	require.Equal(t, "one", p.Info().Name)
	f.advance(ms)
	after := image2
	after.ExecID++
	f.HandleEvent(execOf(f, after, 2))
	require.Empty(t, p.Info().Name)
}

// What is read while an exec sets up the new image's memory is not the old one's: the stack begins where it does in
// neither.
func TestReadInTheMiddleOfExec(t *testing.T) {
	f := newFake(t)
	f.startStack = 1
	f.image(42, 500, "/bin/one")
	f.HandleEvent(execOf(f, image1, 1))
	f.advance(int64(execSettle))
	f.work()
	p := f.process(image1)
	child := record.ProcessID{TGID: 43, StartNs: 5e9}
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())})
	require.EqualValues(t, 1, f.process(child).startStack, "the child has its parent's memory")
	f.advance(int64(time.Second))
	f.startStack = 3
	f.image(42, 500, "/bin/two")
	f.jobs.schedule(p, workLoad, urgent)
	f.work()
	require.Equal(t, "two", p.Info().Name, "nothing tells of the exec yet")
	f.HandleEvent(execOf(f, image2, 2))
	require.Equal(t, "one", p.Info().Name)
}

// TestForkBeforeExecThatWasRead: of a parent that has executed something since the fork, all is read before the
// events of both come. The child has what its parent was.
func TestForkBeforeExecThatWasRead(t *testing.T) {
	child := record.ProcessID{TGID: 43, StartNs: 5e9}
	for name, known := range map[string]bool{"by an exec": true, "by a look": false} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.startStack = 1
			f.image(42, 500, "/bin/one")
			if known {
				f.HandleEvent(execOf(f, image1, 1))
			} else {
				f.HandleEvent(exists(image1))
			}
			f.advance(int64(execSettle))
			f.work()
			f.advance(int64(time.Second))
			fork := record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())}
			f.advance(int64(time.Millisecond))
			f.startStack = 2
			f.image(42, 500, "/bin/two")
			f.jobs.schedule(f.process(image1), workLoad, urgent)
			f.work()
			f.HandleEvents([]record.Event{fork, execOf(f, image2, 2)})
			require.Equal(t, "one", f.process(image1).Info().Name)
			require.Equal(t, "one", f.process(child).Info().Name)
		})
	}
}

// TestForkOfWhatWasReadSince: what was read of a parent after the fork is its child's, too, where it is sure that the
// parent was still the same.
func TestForkOfWhatWasReadSince(t *testing.T) {
	f := newFake(t)
	f.startStack = 1
	f.image(42, 500, "/bin/one")
	f.HandleEvent(execOf(f, image1, 1))
	child := record.ProcessID{TGID: 43, StartNs: 5e9}
	fork := record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())}
	f.advance(int64(execSettle))
	f.work()
	f.HandleEvent(fork)
	require.True(t, f.process(child).Info().Loaded)
}

// TestForkAfterSample: a child that was sampled first keeps its name where nothing is known of its parent.
func TestForkAfterSample(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	child := record.ProcessID{TGID: 43, StartNs: 5e9}
	fork := record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())}
	p := f.Lookup(child, 43, nobody, []byte("comm"))
	f.HandleEvent(fork)
	require.Equal(t, "comm", p.Info().Name)
}

// execOf is an exec now, of an image whose stack begins somewhere.
func execOf(f *fake, id record.ProcessID, startStack uint64) record.Event {
	ev := execAt(id, f.now(), "/bin/two")
	ev.StartStack = startStack
	return ev
}

func TestExecNames(t *testing.T) {
	for given, want := range map[string]Info{
		"/bin/some\xffthing":  {Name: "some\uFFFDthing", Path: "/bin/some\uFFFDthing"},
		"/usr/lib/../bin/one": {Name: "one"}, // /usr/lib may be a link
		"./bin/one":           {Name: "one"},
		"/proc/self/exe":      {Name: "comm"},
		"/dev/fd/5":           {Name: "comm"},
		"":                    {Name: "comm"},
	} {
		f := newFake(t)
		f.HandleEvent(execAt(image1, 0, given))
		want.PID = 42
		require.Equal(t, &want, f.Lookup(image1, 42, nobody, []byte("comm")).Info())
	}
}

// TestLateSampleOfOlderImage enters an image that has been replaced already.
func TestLateSampleOfOlderImage(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/two")
	f.HandleEvent(exists(image2))
	f.work()
	p := f.Lookup(image1, 42, nobody, []byte("one"))
	f.advance(int64(time.Hour))
	f.work()
	require.Equal(t, &Info{PID: 42, Name: "one"}, p.Info())
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42})
	f.work()
	require.False(t, p.Info().Loaded, "the mapping is the newest image's")
}

func TestFork(t *testing.T) {
	child := record.ProcessID{TGID: 77, StartNs: 6e9, ExecID: 1}
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	fork := record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 77, TimeNs: uint64(f.now())}
	f.HandleEvent(fork)
	p := f.Lookup(child, 77, nobody, nil)
	require.Equal(t, "one", p.Info().Name)
	require.Equal(t, 77, p.Info().PID)
	require.Equal(t, f.process(image1).Info().Mappings, p.Info().Mappings)
	require.Zero(t, f.work(), "most children exec soon")

	// The child execs before it was read: what it has inherited stays right.
	exec := child
	exec.ExecID++
	f.image(77, 600, "/bin/other")
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: exec, PID: 77, TimeNs: uint64(f.now()), Path: "other"})
	f.advance(int64(time.Second))
	f.work()
	require.Equal(t, "one", p.Info().Name)
	require.Equal(t, "other", f.process(exec).Info().Name)

	// It is read after its exec, before the event of that: back to the inherited.
	child.TGID, fork.Process.TGID, fork.PID, exec.TGID = 78, 78, 78, 78
	f.HandleEvent(fork)
	f.image(78, 600, "/bin/other")
	at := f.now()
	f.advance(int64(time.Second))
	f.work()
	p = f.process(child)
	require.Equal(t, "other", p.Info().Name)
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: exec, PID: 78, TimeNs: uint64(at), Path: "other"})
	require.Equal(t, "one", p.Info().Name)
	require.Equal(t, 78, p.Info().PID)

	// A child of an unknown process is read like any other.
	orphan := record.ProcessID{TGID: 79, StartNs: 6e9}
	f.image(79, 600, "/bin/third")
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: orphan, Parent: record.ProcessID{TGID: 1}, PID: 79})
	f.advance(int64(time.Second))
	f.work()
	require.Equal(t, "third", f.process(orphan).Info().Name)
}

func TestExit(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	p := f.Lookup(image1, 42, nobody, nil)
	f.work()
	f.HandleEvent(exit(image1))
	f.HandleEvent(exit(image1))
	require.Equal(t, 1, f.takeBack())
	require.Equal(t, []record.ProcessID{image1}, f.published.forgot)

	f.EndInterval()
	got, ok := f.Process(p.Handle())
	require.True(t, ok, "samples of this interval may still be on their way")
	require.Equal(t, "one", got.Info().Name)
	f.EndInterval()
	_, ok = f.Process(p.Handle())
	require.False(t, ok)
	require.Zero(t, f.Stats().Processes)
	require.Empty(t, f.newest)
	require.Empty(t, f.byPID)
	require.Empty(t, f.exited)
	require.Equal(t, "one", p.Info().Name, "whoever holds it may go on reading")
}

// TestExitWhilePublishing takes back what is published after the exit.
func TestExitWhilePublishing(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	p, w := f.next()
	f.HandleEvent(exit(image1))
	f.run(p, w, &f.scratch)
	_, known := f.published.of(image1)
	require.True(t, known)
	f.done(p)
	require.Zero(t, f.work(), "with those of others")
	require.Equal(t, 1, f.takeBack())
	_, known = f.published.of(image1)
	require.False(t, known)
}

// What was published of processes that have ended is taken back together, but of many at once.
func TestManyExits(t *testing.T) {
	f := newFake(t)
	ids := make([]record.ProcessID, maxForgetting+3)
	for i := range ids {
		pid := i + 1
		ids[i] = record.ProcessID{TGID: uint32(pid), StartNs: 5e9}
		f.image(pid, 500, "/bin/one")
		f.HandleEvent(record.Event{Kind: record.EventExists, Process: ids[i], PID: pid})
	}
	require.Equal(t, len(ids), f.work())
	for range 2 {
		for _, id := range ids[:len(ids)-1] {
			f.HandleEvent(exit(id))
		}
	}
	require.Equal(t, 2, f.work())
	require.Equal(t, ids[maxForgetting:len(ids)-1], f.published.forgot)
	require.Equal(t, maxForgetting, f.takeBack())
	f.HandleEvent(exit(ids[len(ids)-1]))
	require.Zero(t, f.work())
	require.Equal(t, 1, f.takeBack())
}

func TestExitUnpublished(t *testing.T) {
	f := newFake(t)
	f.HandleEvent(exists(image1))
	f.HandleEvent(exit(image1))
	require.Zero(t, f.work())
	require.Empty(t, f.published.forgot, "the programs know nothing of it")
}

// TestExitLost has the periodic pass find out.
func TestExitLost(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	f.remove(42)
	f.rereadAll(f.now(), time.Second)
	f.advance(int64(time.Second))
	f.work()
	require.True(t, f.process(image1).exited)
	f.takeBack()
	require.True(t, f.published.forgotten(image1))
	require.EqualValues(t, 1, f.Stats().Lost)
}

// A worker that was left behind in a process that did not answer comes back when all is closed.
func TestPublishErrorAfterTheEnd(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.published.err = errors.New("closed")
	f.HandleEvent(exists(image1))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.Run(ended)
	f.work()
	require.Zero(t, f.Stats().PublishErrors)
}

func TestPublishErrorIsRepeated(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.published.err = errors.New("map full")
	f.HandleEvent(exists(image1))
	f.work()
	require.EqualValues(t, 1, f.Stats().PublishErrors)
	f.published.err = nil
	f.rereadAll(f.now(), time.Second)
	f.advance(int64(time.Second))
	f.work()
	_, known := f.published.of(image1)
	require.True(t, known)
	f.rereadAll(f.now(), time.Second)
	f.advance(int64(time.Second))
	f.work()
	require.Equal(t, 2, f.published.calls, "no news are not published")
}

func TestKernelThread(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/x")
	for comm, name := range map[string]string{
		"kworker/0:1":         "kworker/0:1",
		"kworker/0:1-events":  "kworker/0:1",
		"kworker/u8:2+ext4-x": "kworker/u8:2",
		"kworker/R-x:y-z":     "kworker/R-x:y-z",
		"irq/9-acpi:0-x":      "irq/9-acpi:0-x",
	} {
		f.write(42, "stat", "42 ("+comm+") I 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0 0 0 0 0\n")
		p := f.Lookup(image1, 42, nobody, []byte("kworker"))
		f.lookAgain()
		require.Equal(t, &Info{Loaded: true, PID: 42, Name: name, KernelThread: true}, p.Info())
	}
	require.Zero(t, f.published.calls)
}

// A forked child keeps the sources that it has inherited until its own are settled.
func TestForkKeepsSources(t *testing.T) {
	child := record.ProcessID{TGID: 43, StartNs: 6_000_000_001, ExecID: 1}
	sources := []record.LabelSource{{ABI: record.ABIV1}}
	for name, tc := range map[string]struct {
		parent bool // its sources were published
		found  []record.LabelSource
		again  bool
		keeps  bool
	}{
		"not settled":        {true, nil, true, true},
		"settled":            {true, sources, true, false},
		"none any more":      {true, nil, false, false},
		"nothing to inherit": {false, nil, true, false},
		"some, not settled":  {false, sources, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.image(42, 500, "/bin/x")
			f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42})
			f.work()
			parent := f.process(image1)
			parent.publication = unpublished
			if tc.parent {
				f.publish(parent, publishedSources, sources) // and not shown yet
			}
			f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())})
			p := f.process(child)
			publish := func(sources []record.LabelSource, again bool) {
				f.publish(p, f.situation(p, false).news(VerdictUnknown, sources, again), sources)
			}
			publish(tc.found, tc.again)
			_, published := f.published.of(child)
			require.Equal(t, tc.keeps, !published)
			if tc.keeps {
				publish(sources, false)
				got, _ := f.published.of(child)
				require.Equal(t, sources, got)
			}
		})
	}
}

// What is read of a process after an exec has replaced it is counted, and not shown.
func TestDiscardedIsCounted(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	p, w := f.next()
	f.HandleEvent(execAt(image2, f.now(), "/bin/two"))
	f.run(p, w, &f.scratch)
	f.done(p)
	require.EqualValues(t, 1, f.Stats().Discarded)
}

// Where the event of an exec was lost, nobody knows when it was: what was read before may be of what came.
func TestExecIsFoundLater(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/two") // what it is by now
	f.HandleEvent(exists(image1))
	f.work()
	require.Equal(t, "two", f.process(image1).Info().Name)
	f.advance(int64(time.Minute))
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: image2, PID: 42, TimeNs: uint64(f.now())})
	require.NotEqual(t, "two", f.process(image1).Info().Name)
	f.work()
	require.Equal(t, "two", f.process(image2).Info().Name)
}

// A process that is let go while it is read is not shown any more, and uses no memory.
func TestLetGoWhileRead(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	p, w := f.next()
	f.HandleEvent(exit(image1))
	f.EndInterval()
	f.EndInterval()
	f.run(p, w, &f.scratch)
	f.done(p)
	require.False(t, p.Info().Loaded)
	require.Nil(t, p.current.info)
}

// A process may change its user and be moved to another group: that is seen with the next look, and
// who it is is read once for that.
func TestOwnerChanges(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.setUID(42, "0")
	p := f.Lookup(image1, 42, nobody, nil)
	f.work()
	require.Zero(t, p.Info().UID)
	before := p.Info()
	f.lookAgain()
	require.Same(t, before, p.Info(), "no news")

	const container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	f.setUID(42, "1000")
	f.write(42, "cgroup", "0::/docker/"+container+"\n")
	f.lookAgain()
	require.EqualValues(t, 1000, p.Info().UID)
	require.Equal(t, "/docker/"+container, p.Info().Cgroup)
	require.Equal(t, container, p.Info().ContainerID)
	require.Equal(t, "/bin/one", p.Info().Path)
	require.EqualValues(t, 1000, p.bytesUID, "its memory is the new user's")

	// Who it is was believed just before.
	f.setUID(42, "0")
	f.jobs.schedule(p, workReread, urgent)
	f.work()
	require.EqualValues(t, 1000, p.Info().UID)
}

// What a process was born with goes when it cannot be true again.
func TestBirthIsForgotten(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	require.NotSame(t, p.Info(), p.birth)
	f.advance(int64(execDuration+sampleDelay) + ms)
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42})
	f.work()
	require.Same(t, p.Info(), p.birth)
}

// The end of the thread that is read is not that of its process.
func TestThreadEndsDuringALook(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/some")
	status := filepath.Join(f.root, "42", "status")
	require.NoError(t, os.Rename(status, status+".kept"))
	p := f.Lookup(image1, 42, nobody, nil)
	require.NotZero(t, f.work())
	require.False(t, p.exited)
	require.False(t, p.Info().Loaded)
	require.NoError(t, os.Rename(status+".kept", status))
	f.advance(int64(time.Second))
	require.NotZero(t, f.work())
	require.True(t, p.Info().Loaded)
}
