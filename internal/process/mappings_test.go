//go:build linux

package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Pieces of generated code are one mapping if they follow each other and have one name.
func TestJoinedMappings(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.write(42, "maps", `10000-11000 r-xp 00000000 00:00 0 [anon:a]
11000-12000 rwxp 00000000 00:00 0 [anon:a]
12000-13000 r-xp 00000000 00:00 0 [anon:b]
14000-15000 r-xp 00000000 00:00 0 [anon:b]
15000-16000 r-xp 00000000 00:01 7 /lib/one.so
16000-17000 r-xp 00001000 00:01 7 /lib/one.so
`)
	f.HandleEvent(exists(image1))
	f.work()
	var got [][2]uint64
	for _, m := range f.process(image1).Info().Mappings {
		got = append(got, [2]uint64{m.Start, m.Limit})
	}
	require.Equal(t, [][2]uint64{{0x10000, 0x12000}, {0x12000, 0x13000}, {0x14000, 0x15000}, {0x15000, 0x16000}, {0x16000, 0x17000}}, got)
}

// Another file, or another part of it, at the address of one that is known is another mapping.
func TestMappingReplaced(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	const before = "10000-20000 r-xp 00000000 00:01 7 /lib/one.so\n"
	f.write(42, "maps", before)
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	reread := func() *Info {
		f.jobs.schedule(p, workReread, urgent)
		f.work()
		return p.Info()
	}
	known := p.Info()
	require.Same(t, known, reread(), "nothing has changed")
	for _, after := range []string{
		"10000-20000 r-xp 00000000 00:01 8 /lib/two.so\n",
		"10000-20000 r-xp 00000000 00:02 8 /lib/three.so\n",
		"10000-20000 r-xp 00001000 00:02 8 /lib/three.so\n",
		"10000-1f000 r-xp 00001000 00:02 8 /lib/three.so\n",
	} {
		f.write(42, "maps", after)
		known = reread()
		m := known.Mapping(0x10000)
		var raw procfs.Mapping
		for raw = range f.opts.FS.Mappings(42) {
		}
		require.True(t, m.Shows(&raw), after)
		require.Equal(t, raw.Path, m.Path)
	}
}

// A look opens files for so long, and leaves the rest to the next one.
func TestLookTakesLittle(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	const files = 9
	dir := filepath.Join(f.root, "42", "map_files")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	var maps strings.Builder
	for i := range files {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte(path), 0o644))
		start := 0x10000 * (i + 1)
		fmt.Fprintf(&maps, "%x-%x r-xp 00000000 00:01 %d %s\n", start, start+0x1000, i+1, path)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, fmt.Sprintf("%x-%x", start, start+0x1000))))
	}
	f.write(42, "maps", maps.String())
	var spent int64
	f.opts.cpuTime = func() int64 { return spent }
	f.opts.NameFile = func(*os.File) (record.FileKey, error) {
		spent += int64(maxOpening) / 2
		return record.FileKey{}, os.ErrInvalid
	}
	f.files = executable.NewCache(executable.Options{FS: f.opts.FS, NameFile: f.opts.NameFile, MaxFiles: 100})
	f.HandleEvent(exists(image1))
	read := func() (n int) {
		f.work()
		for _, m := range f.process(image1).Info().Mappings {
			if m.File != nil {
				n++
			}
		}
		return n
	}
	require.Equal(t, 3, read())
	require.EqualValues(t, 1, f.Stats().FileErrors, "once in a look")
	for want := 6; want <= files; want += 3 {
		f.advance(int64(time.Minute)) // it is tried less and less often
		f.jobs.schedule(f.process(image1), workReread, urgent)
		require.Equal(t, want, read())
	}

	// When the receiver ends, files are not read any more.
	f.ending.Store(true)
	f.image(43, 600, "/bin/one")
	f.write(43, "maps", maps.String())
	require.NoError(t, os.Symlink(dir, filepath.Join(f.root, "43", "map_files")))
	id := record.ProcessID{TGID: 43, StartNs: 600e7, ExecID: 1}
	f.HandleEvent(exists(id))
	f.work()
	require.Nil(t, f.process(id).Info().Mappings[0].File)
}

// What is being read of a file ends with the receiver, and not only what is read next.
func TestFilesEnd(t *testing.T) {
	f := newFake(t)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("file"), 0o644))
	dir := filepath.Join(f.root, "42", "map_files")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "10000-11000")))
	opened := func() error {
		_, err := f.files.Map(42, executable.Owner{}, &procfs.Mapping{Start: 0x10000, Limit: 0x11000, Inode: 1, Path: path}, nil)
		return err
	}
	require.NotErrorIs(t, opened(), context.Canceled)
	f.files = executable.NewCache(executable.Options{FS: f.opts.FS, MaxFiles: 1})
	<-(&workers{t: f.Table}).end()
	require.ErrorIs(t, opened(), context.Canceled)
}

// A closedFile is a file that a process maps, and that is not there yet.
type closedFile struct {
	*fake
	path string
}

func newClosedFile(t *testing.T) *closedFile {
	f := &closedFile{newFake(t), filepath.Join(t.TempDir(), "file")}
	f.image(42, 500, "/bin/one")
	f.write(42, "maps", "10000-20000 r-xp 00000000 00:01 7 /lib/one.so\n30000-40000 r-xp 00000000 00:00 0 [anon]\n")
	f.mapFile(f.path)
	f.HandleEvent(exists(image1))
	f.work()
	return f
}

// mapFile says what the process maps at 0x10000.
func (f *fake) mapFile(path string) {
	files := filepath.Join(f.root, "42", "map_files")
	require.NoError(f.t, os.MkdirAll(files, 0o755))
	require.NoError(f.t, os.Symlink(path, filepath.Join(files, "10000-20000")))
}

// look looks at the process, and returns the file that it maps.
func (f *closedFile) look() *executable.File {
	p := f.process(image1)
	f.jobs.schedule(p, workReread, urgent)
	f.work()
	return p.Info().Mappings[0].File
}

// A file that could not be opened is tried again: soon, and then less and less often.
func TestClosedFileIsTriedAgain(t *testing.T) {
	f := newClosedFile(t)
	read := &f.process(image1).worker().read
	require.NotZero(t, f.jobs.queue.Len(), "it waits to be looked at again")
	first := *read
	f.advance(int64(retryDelays[0]) + int64(rereadGap))
	f.work()
	require.Zero(t, f.jobs.queue.Len(), "once")
	require.NotEqual(t, first.reopen, read.reopen)
	shown := f.process(image1).Info()
	require.Nil(t, f.look())
	require.Same(t, shown, f.process(image1).Info(), "nothing is new")
	require.EqualValues(t, 1, f.Stats().FileErrors, "one file")

	require.NoError(t, os.WriteFile(f.path, []byte("text"), 0o644))
	require.Nil(t, f.look(), "too soon")
	f.advance(int64(time.Second))
	require.NotNil(t, f.look())
	require.False(t, read.unread, "there is nothing left to be tried")
}

// What is no file that can be read, or must not be, costs nothing more.
func TestNoFileIsNotTriedAgain(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.write(42, "maps", "10000-20000 r-xp 00000000 00:01 7 /dev/one\n30000-40000 r-xp 00000000 00:00 0 [anon]\n")
	f.mapFile("/dev/null")
	f.HandleEvent(exists(image1))
	f.work()
	require.False(t, f.process(image1).worker().read.unread)
	require.Zero(t, f.jobs.queue.Len())
}

// A file of which not all could be read is replaced when it could.
func TestFaultyFileIsReplaced(t *testing.T) {
	p := start(t, labelled(t))
	var tp, variable uint64
	p.Line(&tp, &variable)
	l := newLooker(t, p, Options{})
	got := l.again()
	require.False(t, got.read.unread)
	faulty := func() *executable.Mapping {
		for i := range got.info.Mappings {
			if m := &got.info.Mappings[i]; m.Path == p.Path {
				return m
			}
		}
		return nil
	}
	whole := faulty().File
	part := executable.NewFile(whole.ID(), p.Path, executable.Facts{HTLHash: whole.HTLHash(), Fault: os.ErrDeadlineExceeded}, nil)
	faulty().File = part
	got = l.again()
	require.Same(t, part, faulty().File, "nothing is said to be tried again")
	l.sub.read.unread = true
	got = l.again()
	require.Same(t, whole, faulty().File)
	require.True(t, got.changed)
	requireSource(t, p, got.sources, record.ABIV1, tp, variable)
}

// The pages are those that the kernel counts.
func TestExecPages(t *testing.T) {
	var s scratch
	f := newRowsFake(t, 1)
	_, cmd := f.start()
	require.NoError(t, s.read(f.opts.FS, cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status"))
	require.NoError(t, err)
	var told uint64
	for _, name := range []string{"VmExe", "VmLib"} {
		var kilobytes uint64
		_, rest, _ := strings.Cut(string(status), name+":")
		_, err := fmt.Sscan(rest, &kilobytes)
		require.NoError(t, err)
		told += kilobytes << 10
	}
	require.Equal(t, told, s.execPages()*uint64(os.Getpagesize()))
}

// Files are in use as long as what was read last refers to them.
func TestFilesInUse(t *testing.T) {
	file := func() *executable.File { return executable.NewFile(procfs.FileID{}, "", executable.Facts{}, nil) }
	old, kept := file(), file()
	p := &Process{}
	p.setCurrent(read{info: &Info{Mappings: []executable.Mapping{{File: old}, {File: kept}}}})
	require.False(t, old.Unused())
	p.setCurrent(read{info: &Info{Mappings: []executable.Mapping{{File: kept}}}})
	require.True(t, old.Unused())
	require.False(t, kept.Unused())
	p.setCurrent(read{})
	require.True(t, kept.Unused())
}

// Paths of a process are kept within a bound, and none beside those of executable mappings; nothing of
// it stays for the next process.
func TestPathsAreBounded(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "7"), 0o755))
	var maps strings.Builder
	path := strings.Repeat("/"+strings.Repeat("d", 200), 20)
	for i := range maxPlaces / 2 {
		perms := "r--p"
		if i < 2*maxPathBytes/len(path) {
			perms = "r-xp"
		}
		fmt.Fprintf(&maps, "%x-%x %s 00000000 08:01 %d %s%d\n", 0x1000*(i+1), 0x1000*(i+2), perms, i+1, path, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "7", "maps"), []byte(maps.String()), 0o644))
	var s scratch
	require.NoError(t, s.read(procfs.FS{Root: root}, 7))
	require.True(t, s.cut)
	kept := 0
	for _, m := range s.exec {
		require.NotEmpty(t, m.Path)
		kept += len(m.Path)
	}
	require.LessOrEqual(t, kept, maxPathBytes)
	require.Greater(t, kept, maxPathBytes-2*len(path))
	require.Len(t, s.files, maxPlaces/2)
	for _, m := range s.files {
		require.Empty(t, m.Path)
	}
	exec := s.exec
	s.release()
	require.Empty(t, exec[0].Path)
}

// Of very many mappings of files, those of libraries are known: a look that has to wait keeps them, however many a
// program makes.
func TestPlacesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		inode func(i int) int
		perms func(i int) string
		cut   bool
	}{
		"data":           {func(i int) int { return 100 + i }, func(int) string { return "rw-p" }, false},
		"generated code": {func(int) int { return 100 }, func(i int) string { return [2]string{"r-xp", "rw-p"}[i%2] }, false},
		"a library's":    {func(int) int { return 1 }, func(int) string { return "rw-p" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(root, "7"), 0o755))
			var maps strings.Builder
			addr := 0x1000
			add := func(inode int, perms string) {
				fmt.Fprintf(&maps, "%x-%x %s 00000000 08:01 %d /file%d\n", addr, addr+0x1000, perms, inode, inode)
				addr += 0x2000
			}
			library := func(inode int) {
				for _, perms := range []string{"r--p", "r-xp", "r--p", "rw-p"} {
					add(inode, perms)
				}
			}
			library(1)
			for i := range 3 * maxPlaces {
				add(tc.inode(i), tc.perms(i))
			}
			library(2)
			require.NoError(t, os.WriteFile(filepath.Join(root, "7", "maps"), []byte(maps.String()), 0o644))
			var s scratch
			require.NoError(t, s.read(procfs.FS{Root: root}, 7))
			require.LessOrEqual(t, len(s.files), maxPlaces)
			require.True(t, slices.IsSortedFunc(s.files, func(a, b procfs.Mapping) int { return cmp.Compare(a.Start, b.Start) }))
			known := map[uint64]int{}
			for _, m := range s.files {
				known[m.Inode]++
			}
			require.GreaterOrEqual(t, known[1], 4)
			if !tc.cut {
				require.Equal(t, 4, known[1])
				require.Equal(t, 4, known[2])
			}
			require.Equal(t, tc.cut || name == "generated code", s.cut)
		})
	}
}

// Only code that cannot be written, with mappings of one file around it, may be that file's; and when these go, it
// is no more.
func TestMovedBack(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.write(42, "maps", `10000-20000 r--p 00000000 00:01 7 /bin/one
20000-30000 r-xp 00000000 00:00 0
30000-40000 rwxp 00000000 00:00 0
50000-60000 r-xp 00040000 00:01 7 /bin/one
60000-70000 r-xp 00000000 00:00 0
70000-80000 r--p 00000000 00:01 8 /lib/two
80000-90000 r-xp 00000000 00:00 0
`)
	var s scratch
	require.NoError(t, s.read(f.opts.FS, 42))
	require.Len(t, s.exec, 4, "what follows each other is one")
	f.write(42, "maps", `10000-20000 r--p 00000000 00:01 7 /bin/one
20000-30000 r-xp 00000000 00:00 0
38000-40000 rwxp 00000000 00:00 0
50000-60000 r-xp 00040000 00:01 7 /bin/one
60000-70000 r-xp 00000000 00:00 0
70000-80000 r--p 00000000 00:01 8 /lib/two
80000-90000 r-xp 00000000 00:00 0
`)
	require.NoError(t, s.read(f.opts.FS, 42))
	require.Len(t, s.exec, 5)
	require.Len(t, s.around, 1)
	require.Equal(t, "/bin/one", s.around[0].Below.Path)
	require.EqualValues(t, 0x50000, s.around[0].Above.Start)

	var r reader
	r.init(Options{})
	t.Cleanup(r.files.Close)
	moved := mapping(0x20000, 0x30000, 7)
	moved.Moved = true
	l := &look{info: Info{Mappings: []executable.Mapping{moved}}}
	alone := scratch{exec: []procfs.Mapping{{Start: moved.Start, Limit: moved.Limit, Perms: procfs.PermRead | procfs.PermExec}}}
	mappings, changed := r.execMappings(l, &alone)
	require.True(t, changed)
	require.Equal(t, []executable.Mapping{{Start: moved.Start, Limit: moved.Limit}}, mappings)
	s.release()
	require.Empty(t, s.around)
}
