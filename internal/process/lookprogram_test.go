//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

// changing makes a file another one, as far as its ctime tells, when that of a path is read.
func changing(t *testing.T, read, changed string) func(*os.File) (record.FileKey, error) {
	done := false
	return func(f *os.File) (record.FileKey, error) {
		if f.Name() == read && !done {
			done = true
			touch(t, changed)
		}
		return record.FileKey{}, errors.New("not known")
	}
}

func touch(t *testing.T, path string) {
	if err := os.Chmod(path, 0o700); err != nil {
		t.Error(err)
	}
}

// A looker looks at one process without a table.
type looker struct {
	reader
	t   *testing.T
	sub subject
	s   scratch
}

func newLooker(t *testing.T, p *program, opts Options) *looker {
	l := &looker{t: t, sub: subject{id: p.id(), pid: p.PID}}
	l.init(opts)
	t.Cleanup(l.files.Close)
	return l
}

// again takes another look, of which the next one knows.
func (l *looker) again() *look {
	l.t.Helper()
	got, err := l.look(&l.sub, workReread, &l.s)
	require.NoError(l.t, err)
	l.sub.read = got.read
	l.sub.read.info = &got.info
	return got
}

// labelled is a program with labels of its own.
func labelled(t *testing.T) string {
	return compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+definer, "-rdynamic", "-DVARIABLE="+record.ABIV1.Symbol())
}

func requireState(t *testing.T, l *look, path string, want labelsource.State) {
	t.Helper()
	for _, s := range l.info.Sources {
		if s.Path == path {
			require.Equal(t, want, s.State, s.Err)
			return
		}
	}
	require.Fail(t, "no source", path)
}

// A program that is removed or changed in its attributes while its file is read keeps its labels.
func TestProgramChangesWhileRead(t *testing.T) {
	path := labelled(t)
	p := start(t, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	l := newLooker(t, p, Options{NameFile: changing(t, path, path)})
	requireSource(t, p, l.again().sources, record.ABIV1, tp, variable)
}

// A program that is removed, or changed in its attributes, while it runs keeps its labels at every look.
func TestProgramChangesLater(t *testing.T) {
	path := labelled(t)
	p := start(t, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	l := newLooker(t, p, Options{})
	requireSource(t, p, l.again().sources, record.ABIV1, tp, variable)
	for _, change := range []func(){func() { touch(t, path) }, func() { require.NoError(t, os.Remove(path)) }} {
		change()
		for _, changed := range []bool{true, false} {
			got := l.again()
			requireSource(t, p, got.sources, record.ABIV1, tp, variable)
			require.Equal(t, changed, got.changed)
			require.False(t, got.loading)
		}
	}
}

// Where the program changes between being identified and being mapped, it is identified again soon.
func TestProgramChangesBeforeItIsMapped(t *testing.T) {
	first := filepath.Join(t.TempDir(), "first")
	require.NoError(t, os.WriteFile(first, make([]byte, 4096), 0o644))
	// It maps another file below itself, which is read before it.
	path := compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+target.Common+`
#include <fcntl.h>
int main(int argc, char **argv) {
	mmap((void *)0x10000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, open(argv[1], O_RDONLY), 0);
	say(&custom_labels_current_set); await(); return 0;
}`, "-pie", "-rdynamic")
	p := start(t, path, first)
	var tp, variable uint64
	p.Line(&tp, &variable)
	l := newLooker(t, p, Options{NameFile: changing(t, first, path)})
	got := l.again()
	requireState(t, got, path, labelsource.NotProgram)
	require.True(t, got.loading, "looked at again soon")
	touch(t, path) // it is neither as it was identified nor as it was mapped
	got = l.again()
	requireState(t, got, path, labelsource.Active)
	require.True(t, got.changed)
	require.False(t, got.loading)
	requireSource(t, p, got.sources, record.ABIV1, tp, variable)
	require.False(t, l.again().changed)
}

// A program that could not be identified is with the next look.
func TestProgramIsIdentifiedLater(t *testing.T) {
	path := labelled(t)
	p := start(t, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	l := newLooker(t, p, Options{})
	requireState(t, l.again(), path, labelsource.Active)
	l.sub.read.program = procfs.FileID{}
	got := l.again()
	requireState(t, got, path, labelsource.Active)
	require.False(t, got.changed, "nothing was mapped again")
}

// A program that is known stays so when it cannot be identified again.
func TestProgramStaysKnown(t *testing.T) {
	program := procfs.FileID{Dev: 1, Inode: 2, CtimeNs: 3, Size: 4}
	r := &reader{opts: Options{FS: procfs.FS{Root: t.TempDir()}}}
	l := &look{tid: 7, read: remembered{program: program}}
	l.info.Mappings = []executable.Mapping{{File: executable.NewFile(program, "", executable.Facts{}, nil)}}
	r.readProgram(l)
	require.Equal(t, program, l.read.program)
	l.info.Mappings = nil
	r.readProgram(l)
	require.Zero(t, l.read.program)
}

// A program that cannot be identified is tried again soon.
func TestProgramIsTriedAgain(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	exe := filepath.Join(f.root, strconv.Itoa(42), "exe")
	require.NoError(t, os.Remove(exe))
	require.NoError(t, os.Symlink(exe, exe)) // a loop
	f.HandleEvent(exists(image1))
	f.work()
	require.NotZero(t, f.jobs.queue.Len(), "it waits to be looked at again")
	require.NoError(t, os.Remove(exe))
	require.NoError(t, os.Symlink("/proc/self/exe", exe))
	f.advance(int64(retryDelays[0]) + int64(rereadGap))
	require.Equal(t, 1, f.work())
	require.NotZero(t, f.process(image1).worker().read.program)
}

// What will not pass by itself is not tried again.
func TestMayPass(t *testing.T) {
	for _, lasting := range []error{nil, unix.EACCES, procfs.ErrNotAllowed, procfs.ErrNotRegular, procfs.ErrNoProcess} {
		require.False(t, mayPass(lasting), "%v", lasting)
	}
	for _, passing := range []error{unix.EMFILE, unix.EWOULDBLOCK, unix.ESTALE, unix.EIO, procfs.ErrReplaced} {
		require.True(t, mayPass(passing), "%v", passing)
	}
}

// What is found of a process counts as certain for others of its program only if the kernel has told
// that it executed the file that /proc/PID/exe shows, which the process can change.
func TestCertainOfWhatWasExecuted(t *testing.T) {
	path := labelled(t)
	p := start(t, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	id, err := procfs.FS{}.StatExecutable(p.PID)
	require.NoError(t, err)
	shown, other := keyOf(id), keyOf(id)
	other.Inode++
	named := func(key record.FileKey, err error) func(*os.File) (record.FileKey, error) {
		return func(f *os.File) (record.FileKey, error) {
			if f.Name() != path {
				return record.FileKey{}, errors.New("not asked for")
			}
			return key, err
		}
	}
	for name, tc := range map[string]struct {
		program  record.FileKey
		named    func(*os.File) (record.FileKey, error)
		presumed bool
	}{
		"it is what is shown":             {shown, nil, false},
		"and is named otherwise":          {shown, named(other, nil), false}, // on overlayfs
		"another one":                     {other, nil, true},
		"which the kernel does not name":  {other, named(record.FileKey{}, errors.New("no")), true},
		"which the kernel names so":       {other, named(other, nil), false}, // on btrfs
		"which the kernel names as shown": {other, named(shown, nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			f, known := newProgramsFake(t, func(o *Options) { o.FS, o.NameFile = procfs.FS{}, tc.named })
			defer f.files.Close()
			f.HandleEvent(record.Event{Kind: record.EventExec, Process: p.id(), PID: p.PID, TimeNs: uint64(f.now()), Program: tc.program})
			f.advance(int64(execSettle))
			f.work()
			proc := f.process(p.id())
			require.Equal(t, labelsource.Active, proc.Info().Sources[0].State)
			f.advance(ms)
			f.Sampled(proc, f.now())
			f.work()
			requireSource(t, p, known.sources[tc.program], record.ABIV1, tp, variable)
			require.Equal(t, tc.presumed, known.presumed[tc.program])
		})
	}
}

// No file is opened for what can be told without.
func TestCertainIsAskedIfItMatters(t *testing.T) {
	f, known := newProgramsFake(t)
	asked := 0
	settle := func(p *Process, sources []record.LabelSource) {
		f.programs.settled(p, sources, func(program record.FileKey) bool {
			require.Equal(t, programA, program)
			asked++
			return true
		})
		f.programs.teach(p)
	}
	settle(f.executes(1, programA), nil)
	settle(f.executes(2, programA), []record.LabelSource{{ABI: record.ABIV1, Kind: record.TLSDTVGlibc, Module: 2}})
	settle(f.executes(3, record.FileKey{}), atOffset(-8))
	require.Zero(t, asked, "there is nothing to teach")
	first := f.executes(4, programA)
	settle(first, atOffset(-8))
	settle(first, atOffset(-8))
	settle(f.executes(5, programA), atOffset(-8))
	require.Equal(t, 1, asked)
	require.False(t, known.presumed[programA])
}

// Only the file that runs is taken for the program, and only in the state in which it is.
func TestOtherProgram(t *testing.T) {
	program := procfs.FileID{Dev: 1, Inode: 2, CtimeNs: 3, Size: 4}
	for _, tc := range []struct {
		id    procfs.FileID
		maps  bool
		other bool
	}{
		{program, true, false},
		{procfs.FileID{Dev: 1, Inode: 2, CtimeNs: 5, Size: 4}, false, true},
		{procfs.FileID{Dev: 1, Inode: 6, CtimeNs: 3, Size: 4}, false, false},
		{procfs.FileID{Dev: 6, Inode: 2, CtimeNs: 3, Size: 4}, false, false},
	} {
		l := &look{read: remembered{program: program}}
		l.info.Mappings = []executable.Mapping{{}, {File: executable.NewFile(tc.id, "", executable.Facts{}, nil)}}
		require.Equal(t, tc.maps, l.info.maps(program), "%v", tc.id)
		require.Equal(t, tc.other, l.programChanged(), "%v", tc.id)
		l.info.Mappings = append(l.info.Mappings, executable.Mapping{File: executable.NewFile(program, "", executable.Facts{}, nil)})
		require.False(t, l.programChanged(), "it is mapped")
	}
}

// A process that has executed another program since the last event is looked at when the event of that has come.
func TestLookAwaitsExec(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "exe")
	require.NoError(t, os.WriteFile(exe, make([]byte, 20), 0o600))
	for name, tc := range map[string]struct {
		size  uint64 // of the program that an event has told of
		then  func(f *fake)
		looks uint64
	}{
		"it is the one":         {20, func(*fake) {}, 1},
		"its size is not known": {0, func(*fake) {}, 1},
		"another one":           {10, func(*fake) {}, 0},
		"another one, sampled":  {10, func(f *fake) { f.Sampled(f.process(image1), f.now()) }, 0},
		"no event comes":        {10, func(f *fake) { f.advance(int64(young)) }, 1},
		"the event comes":       {10, func(f *fake) { f.executed(image2, 20) }, 1},
		"another event comes":   {10, func(f *fake) { f.executed(image2, 10) }, 0},
		"it ends":               {10, func(f *fake) { f.HandleEvent(record.Event{Kind: record.EventExit, Process: image1}) }, 0},
		"it can be read no more": {10, func(f *fake) {
			require.NoError(f.t, os.Remove(filepath.Join(f.root, "42", "exe")))
			f.advance(int64(young))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newProgramsFake(t)
			f.image(42, 500, exe)
			f.executed(image1, tc.size)
			f.advance(int64(execSettle))
			f.work()
			tc.then(f)
			f.advance(int64(execSettle))
			f.work()
			require.Equal(t, tc.looks, f.Stats().Loads)
			if name == "no event comes" {
				require.Empty(t, f.programs.without, "what was found is another one's")
			}
		})
	}
}

// executed tells that a process has executed a program of some size now.
func (f *fake) executed(id record.ProcessID, size uint64) {
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: int(id.TGID), TimeNs: uint64(f.now()), Program: record.FileKey{Inode: 7, Size: size}})
}

// What is found of a program on an image, which another one may be to the kernel later, is not kept for
// others. It confirms what its process began with, or takes that back.
func TestProgramOfImage(t *testing.T) {
	f, known := newProgramsFake(t)
	settle := func(pid int, mount uint64, offset int64) Confirmation {
		p := f.executes(pid, programA)
		p.worker().read.program.Mount = mount
		f.advance(int64(longestStart))
		f.settle(p, atOffset(offset), true)
		return p.Confirm()
	}
	settle(1, 1, -8)
	require.Empty(t, known.sources)
	settle(2, 0, -8)
	require.Equal(t, Confirmed, settle(3, 1, -8))
	require.Equal(t, atOffset(-8), known.sources[programA])
	require.Equal(t, Refuted, settle(4, 1, -16))
	require.Empty(t, known.sources)
}
