//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// wantsUID is a Selection of one user's processes.
func wantsUID(uid uint32) *Selection {
	return &Selection{Wants: func(i *Info) bool { return !i.KernelThread && i.UID == uid }}
}

func selecting(s *Selection) func(*Options) { return func(o *Options) { o.Selection = s } }

func (f *fake) setUID(pid int, uid string) {
	f.write(pid, "status", "Uid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\nNSpid:\t42\n")
}

// lookAgain is the periodic look.
func (f *fake) lookAgain() {
	f.advance(1e9)
	f.mu.Lock()
	f.rereadAll(f.now(), 0)
	f.mu.Unlock()
	f.advance(1e9)
	f.work()
}

// A process is judged when it is read, and again at each look: it may change its user.
func TestSelection(t *testing.T) {
	f := newFake(t, selecting(wantsUID(0)))
	f.image(42, 500, "/bin/one")
	p := f.Lookup(image1, 42, nobody, []byte("comm"))
	require.Equal(t, VerdictUnknown, p.Info().Verdict)
	f.work()
	require.Equal(t, VerdictFiltered, p.Info().Verdict)
	require.True(t, f.published.filters(image1))
	require.True(t, p.Info().Loaded)
	require.Equal(t, "/bin/one", p.Info().Path)
	require.Empty(t, p.Info().Mappings, "nobody needs them")
	calls := f.published.calls
	f.lookAgain()
	require.Equal(t, calls, f.published.calls, "no news")

	f.setUID(42, "0")
	f.lookAgain()
	require.Equal(t, VerdictWanted, p.Info().Verdict)
	require.False(t, f.published.filters(image1))
	require.Len(t, p.Info().Mappings, 1)
	require.EqualValues(t, 0, p.Info().UID)

	f.setUID(42, "1000")
	f.lookAgain()
	require.Equal(t, VerdictFiltered, p.Info().Verdict)
	require.True(t, f.published.filters(image1))

	f.HandleEvent(record.Event{Kind: record.EventExit, Process: image1})
	f.takeBack()
	require.True(t, f.published.forgotten(image1))
	require.False(t, f.published.filters(image1))
}

// What is there at the start is judged before the first sample, without workers.
func TestSelectionJudge(t *testing.T) {
	second := record.ProcessID{TGID: 43, StartNs: 6_000_000_001, ExecID: 1}
	f := newFake(t, selecting(wantsUID(0)))
	f.image(42, 500, "/bin/one")
	f.image(43, 600, "/bin/two")
	f.setUID(43, "0")
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42})
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: second, PID: 43})
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: record.ProcessID{TGID: 44, StartNs: 1}, PID: 44}) // has gone meanwhile
	f.Judge(time.Minute)
	require.True(t, f.published.filters(image1))
	require.Equal(t, VerdictFiltered, f.process(image1).Info().Verdict)
	require.Equal(t, VerdictUnknown, f.process(second).Info().Verdict, "wanted, as far as it is known")
	require.False(t, f.published.filters(second))
	f.work()
	require.Equal(t, VerdictFiltered, f.process(image1).Info().Verdict)
	require.Equal(t, VerdictWanted, f.process(second).Info().Verdict)
}

// What does not let itself be judged at the start does not keep it waiting.
func TestJudgeDoesNotHang(t *testing.T) {
	f := newFake(t, selecting(wantsUID(0)))
	f.image(42, 500, "/bin/one")
	path := filepath.Join(f.root, "42", "status")
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42})
	f.Judge(time.Millisecond)
	require.Equal(t, VerdictUnknown, f.process(image1).Info().Verdict)
	answer, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, answer.Close())
}

// Selectors by PID hold from the first look on, for what is there at the start and for
// what comes.
func TestSelectionByPID(t *testing.T) {
	second := record.ProcessID{TGID: 43, StartNs: 6_000_000_001, ExecID: 1}
	f := newFake(t, selecting(&Selection{ByPID: true, Wants: func(i *Info) bool { return i.PID == 43 }}))
	f.image(42, 500, "/bin/one")
	f.image(43, 600, "/bin/two")
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42})
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: second, PID: 43})
	f.Judge(time.Minute)
	require.True(t, f.published.filters(image1))
	require.False(t, f.published.filters(second))
	f.work()
	require.Equal(t, VerdictFiltered, f.process(image1).Info().Verdict)
	require.Equal(t, VerdictWanted, f.process(second).Info().Verdict)
}

// An exec makes another process, which is judged for itself.
func TestSelectionExec(t *testing.T) {
	f := newFake(t, selecting(&Selection{Wants: func(i *Info) bool { return i.Path == "/bin/two" }}))
	f.image(42, 500, "/bin/one")
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42, TimeNs: 1})
	f.work()
	require.Equal(t, VerdictFiltered, f.process(image1).Info().Verdict)
	f.image(42, 500, "/bin/two")
	f.advance(1e9)
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: image2, PID: 42, TimeNs: uint64(f.now()), Path: "/bin/two"})
	require.Equal(t, VerdictUnknown, f.process(image2).Info().Verdict)
	f.advance(int64(execSettle))
	f.work()
	require.Equal(t, VerdictWanted, f.process(image2).Info().Verdict)
}

// A forked child has its parent's verdict, but not where that may be about the PID.
func TestSelectionFork(t *testing.T) {
	child := record.ProcessID{TGID: 43, StartNs: 6_000_000_001, ExecID: 1}
	for name, tc := range map[string]struct {
		byPID bool
		want  Verdict
	}{"by user": {false, VerdictFiltered}, "by PID": {true, VerdictUnknown}} {
		t.Run(name, func(t *testing.T) {
			s := wantsUID(0)
			s.ByPID = tc.byPID
			f := newFake(t, selecting(s))
			f.image(42, 500, "/bin/one")
			f.HandleEvent(record.Event{Kind: record.EventExists, Process: image1, PID: 42})
			f.work()
			f.image(43, 600, "/bin/one")
			f.setUID(43, "0")
			f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.now())})
			require.Equal(t, tc.want, f.process(child).Info().Verdict)
			f.advance(int64(forkSettle))
			f.work()
			require.Equal(t, VerdictWanted, f.process(child).Info().Verdict)
			_, told := f.published.of(child)
			require.True(t, told, "what BPF has inherited is taken back")
		})
	}
}

func TestSelectionLabelledOnly(t *testing.T) {
	f := newFake(t, selecting(&Selection{LabelledOnly: true}))
	f.image(42, 500, "/bin/one")
	p := f.Lookup(image1, 42, nobody, []byte("comm"))
	f.work()
	require.Equal(t, VerdictFiltered, p.Info().Verdict)
	require.True(t, f.published.filters(image1))
	require.Len(t, p.Info().Mappings, 1, "a library may come that makes it wanted")

	active := &Info{Sources: []labelsource.Status{{State: labelsource.Active}}}
	pending := &Info{Sources: []labelsource.Status{{State: labelsource.NotRelocated}}}
	s := &Selection{LabelledOnly: true}
	for name, tc := range map[string]struct {
		selection *Selection
		info      *Info
		again     bool
		previous  Verdict
		want      Verdict
	}{
		"none":                 {nil, &Info{}, false, VerdictUnknown, VerdictUnknown},
		"labels do not matter": {&Selection{}, &Info{}, false, VerdictUnknown, VerdictWanted},
		"labelled":             {s, active, false, VerdictFiltered, VerdictWanted},
		"labelled, loading":    {s, active, true, VerdictFiltered, VerdictWanted},
		"unlabelled":           {s, &Info{}, false, VerdictWanted, VerdictFiltered},
		"loading, new":         {s, pending, true, VerdictUnknown, VerdictUnknown},
		"loading, was wanted":  {s, pending, true, VerdictWanted, VerdictWanted},
		"loading, was not":     {s, pending, true, VerdictFiltered, VerdictFiltered},
		"never relocated":      {s, pending, false, VerdictUnknown, VerdictFiltered},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.selection.judge(tc.info, tc.again, tc.previous))
		})
	}
}

func TestSelectionKernelThread(t *testing.T) {
	for want, s := range map[Verdict]*Selection{VerdictFiltered: wantsUID(0), VerdictWanted: {}} {
		f := newFake(t, selecting(s))
		f.image(42, 500, "/x")
		f.write(42, "stat", "42 (kworker/0:1) I 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 500 0 0 0 0 0 0\n")
		p := f.Lookup(image1, 42, nobody, []byte("kworker"))
		f.work()
		require.Equal(t, want, p.Info().Verdict)
		require.Equal(t, want == VerdictFiltered, f.published.filters(image1))
	}
}

// The selection is shown the cgroup, and its id where it asks for it.
func TestSelectionCgroup(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	groups := procfs.CgroupFS{Root: root}
	id, err := groups.ID("/a/b")
	require.NoError(t, err)
	require.NotZero(t, id)
	s := &Selection{Cgroups: groups, Wants: func(i *Info) bool { return i.CgroupID == id && i.Cgroup == "/a/b" }}
	f := newFake(t, selecting(s))
	f.image(42, 500, "/bin/one")
	p := f.Lookup(image1, 42, nobody, []byte("comm"))
	f.work()
	require.Equal(t, VerdictFiltered, p.Info().Verdict)
	f.write(42, "cgroup", "1:name=systemd:/x\n0::/a/b\n")
	f.lookAgain()
	require.Equal(t, VerdictWanted, p.Info().Verdict)
	for _, path := range []string{"", "/../a/b", "/gone"} {
		_, err := groups.ID(path)
		require.ErrorIs(t, err, os.ErrNotExist, path)
	}
}

// A verdict that could not be told is told at the next look; user space has it anyway.
func TestSelectionPublishError(t *testing.T) {
	f := newFake(t, selecting(wantsUID(0)))
	f.published.err = errors.New("no room")
	f.image(42, 500, "/bin/one")
	p := f.Lookup(image1, 42, nobody, []byte("comm"))
	f.work()
	require.Equal(t, VerdictFiltered, p.Info().Verdict)
	require.EqualValues(t, 1, f.Stats().PublishErrors)
	f.published.err = nil
	f.lookAgain()
	require.True(t, f.published.filters(image1))
}
