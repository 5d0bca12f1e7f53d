//go:build linux && (amd64 || arm64)

package pipeline

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/symbol"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// startKnown starts a program. lookup gives its process in the table, or one with its PID that
// has started later.
func startKnown(t *testing.T, fs procfs.FS, cmd *exec.Cmd) (table *process.Table, lookup func(later time.Duration) *process.Process) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	stat, err := fs.Stat(pid)
	require.NoError(t, err)
	offset, err := fs.BootTimeOffset()
	require.NoError(t, err)
	table = process.NewTable(process.Options{FS: fs, Publisher: unpublished{}})
	return table, func(later time.Duration) *process.Process {
		started := int64(stat.StartTicks)*int64(time.Second/procfs.TicksPerSecond) - offset + int64(later)
		return table.Lookup(record.ProcessID{TGID: uint32(pid), StartNs: uint64(started)}, pid, 0, []byte("sleep"))
	}
}

// A perf map counts if it is a file of the process's user or of root, and the PID still
// that of the process.
func TestMapSource(t *testing.T) {
	testutil.RequireRoot(t)
	fs := procfs.FS{Root: "/proc"}
	cmd := exec.Command("sleep", "60")
	const user = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	table, lookup := startKnown(t, fs, cmd)
	pid := cmd.Process.Pid
	source := func(later time.Duration) mapSource { return mapSource{lookup(later).Info(), lookup(later), table, fs} }
	s := source(0)
	path := fmt.Sprintf("/tmp/perf-%d.map", pid)
	t.Cleanup(func() { _ = os.Remove(path) })
	_, err := s.OpenMap()
	require.ErrorIs(t, err, os.ErrNotExist)

	const text = "1000 10 name\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, err = s.OpenMap()
	require.ErrorIs(t, err, procfs.ErrNotAllowed, "a file of root's, perhaps linked here")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.Rename(path, secret))
	for _, mode := range []os.FileMode{0o600, 0o644} {
		require.NoError(t, os.Chmod(secret, mode))
		require.NoError(t, os.Symlink(secret, path))
		_, err = s.OpenMap()
		require.ErrorIs(t, err, procfs.ErrNotRegular, "a link to it")
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	f, err := s.OpenMap()
	require.NoError(t, err, "root's, for all to read")
	require.NoError(t, f.Close())
	require.NoError(t, os.Chown(path, user, user))
	require.NoError(t, os.Chmod(path, 0o600))
	f, err = s.OpenMap()
	require.NoError(t, err)
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.ID.Size))
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	require.NoError(t, f.Close())

	for _, c := range []struct {
		mode  os.FileMode
		group int
		want  error
	}{{0o660, user, nil}, {0o660, 0, nil}, {0o640, 12345, nil}, {0o660, 12345, errOwner}, {0o606, user, errOwner}, {0o600, user, nil}} {
		require.NoError(t, os.Chown(path, user, c.group))
		require.NoError(t, os.Chmod(path, c.mode))
		f, err := s.OpenMap()
		require.ErrorIs(t, err, c.want, "%v", c)
		if err == nil {
			require.NoError(t, f.Close())
		}
	}
	require.NoError(t, os.Link(path, path+".link"))
	t.Cleanup(func() { _ = os.Remove(path + ".link") })
	_, err = s.OpenMap()
	require.ErrorIs(t, err, errOwner, "a file of the user's from elsewhere, which others may write there")
	require.NoError(t, os.Remove(path+".link"))

	_, err = source(time.Second).OpenMap()
	require.ErrorIs(t, err, os.ErrNotExist, "another process has the PID")

	require.NoError(t, os.Chown(path, 12345, 12345))
	_, err = s.OpenMap()
	require.ErrorIs(t, err, procfs.ErrNotAllowed)
	require.NoError(t, os.Chmod(path, 0o644))
	_, err = s.OpenMap()
	require.ErrorIs(t, err, errOwner)

	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o666))
	done := make(chan error, 1)
	go func() {
		_, err := s.OpenMap()
		done <- err
	}()
	select {
	case err := <-done:
		require.ErrorIs(t, err, procfs.ErrNotRegular)
	case <-time.After(time.Minute):
		require.Fail(t, "waits for a FIFO")
	}
}

// A perf map that was written before the process began is one of an earlier process, until this one writes to it.
func TestMapSourceOfEarlierProcess(t *testing.T) {
	testutil.RequireRoot(t)
	fs := procfs.FS{Root: "/proc"}
	cmd := exec.Command("sleep", "60")
	table, lookup := startKnown(t, fs, cmd)
	id, pid := lookup(0).ID(), cmd.Process.Pid
	path := fmt.Sprintf("/tmp/perf-%d.map", pid)
	t.Cleanup(func() { _ = os.Remove(path) })
	write := func() (sinceNs int64) {
		require.NoError(t, os.WriteFile(path, []byte("1000 10 name\n"), 0o600))
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		return time.Now().UnixNano() - st.Ctim.Nano()
	}
	open := func(id record.ProcessID) error {
		p := table.Lookup(id, pid, 0, nil)
		f, err := mapSource{p.Info(), p, table, fs}.OpenMap()
		if err == nil {
			require.NoError(t, f.Close())
		}
		return err
	}
	const tick = 50 * time.Millisecond // more than that of a coarse clock
	age := write()
	written := int64(monotonicNow()) - age
	require.NoError(t, open(id))
	executed := func(after time.Duration) record.ProcessID { // since it was written
		id.ExecID++
		table.HandleEvent(record.Event{Kind: record.EventExec, Process: id, PID: pid, TimeNs: uint64(written + int64(after)), Path: "/bin/sleep"})
		return id
	}
	require.NoError(t, open(executed(mapSlack/2)), "times of files are not exact")
	old := executed(3 * mapSlack / 2)
	err := open(old)
	require.ErrorIs(t, err, errOldMap)
	require.ErrorIs(t, err, os.ErrNotExist, "it is none, and looked for again")
	require.Eventually(t, func() bool { write(); return open(old) == nil }, time.Minute, tick)
}

// A process in a PID namespace writes its map under the PID that it sees, below its own root.
func TestMapSourceInNamespace(t *testing.T) {
	testutil.RequireRoot(t)
	root := t.TempDir()
	source := filepath.Join(root, "pause.c")
	require.NoError(t, os.WriteFile(source, []byte("#include <unistd.h>\nint main(void) { pause(); }\n"), 0o600))
	out, err := exec.Command("gcc", "-static", "-o", filepath.Join(root, "pause"), source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Mkdir(filepath.Join(root, "tmp"), 0o755))
	cmd := exec.Command("/pause")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWPID}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	fs := procfs.FS{Root: "/proc"}
	stat, err := fs.Stat(cmd.Process.Pid)
	require.NoError(t, err)
	offset, err := fs.BootTimeOffset()
	require.NoError(t, err)
	table := process.NewTable(process.Options{FS: fs, Publisher: unpublished{}})
	started := int64(stat.StartTicks)*int64(time.Second/procfs.TicksPerSecond) - offset
	p := table.Lookup(record.ProcessID{TGID: uint32(cmd.Process.Pid), StartNs: uint64(started)}, cmd.Process.Pid, 0, nil)
	s := mapSource{p.Info(), p, table, fs}
	for name, text := range map[string]string{"perf-1.map": "1000 10 inside\n", fmt.Sprintf("perf-%d.map", cmd.Process.Pid): "1000 10 other\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "tmp", name), []byte(text), 0o600))
	}
	f, err := s.OpenMap()
	require.NoError(t, err)
	defer f.Close()
	got, err := io.ReadAll(io.NewSectionReader(f, 0, f.ID.Size))
	require.NoError(t, err)
	require.Equal(t, "1000 10 inside\n", string(got))
}

// A debug file is one that the sampled process sees, as long as it lives: what has its PID then
// is perhaps in another container.
func TestFileSource(t *testing.T) {
	testutil.RequireRoot(t)
	root := t.TempDir()
	source := filepath.Join(root, "pause.c")
	require.NoError(t, os.WriteFile(source, []byte("#include <unistd.h>\nint main(void) { pause(); }\n"), 0o600))
	out, err := exec.Command("gcc", "-static", "-o", filepath.Join(root, "pause"), source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command("/pause")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	fs := procfs.FS{Root: "/proc"}
	table, lookup := startKnown(t, fs, cmd)
	in := func(later time.Duration) fileSource {
		file := executable.NewFile(procfs.FileID{Inode: 1}, "/seen/by/another", executable.Facts{}, nil)
		return fileSource{file, &executable.Mapping{File: file, Path: "/pause"}, &process.Info{}, lookup(later), table, fs}
	}
	require.Equal(t, "/pause", in(0).Path(), "as the process has it")
	f, size, err := in(0).OpenPath(symbol.TargetRoot, "/pause.c")
	require.NoError(t, err)
	require.NotZero(t, size)
	require.NoError(t, f.Close())
	_, _, err = in(time.Second).OpenPath(symbol.TargetRoot, "/pause.c")
	require.ErrorIs(t, err, procfs.ErrNoProcess, "another process has the PID")
	_, _, err = in(0).OpenPath(symbol.HostRoot, "/pause.c")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, procfs.ErrNoProcess)

	// A file of the host's is opened with the rights of the process, or, when that has gone, with those that all have.
	host := filepath.Join(t.TempDir(), "debug")
	require.NoError(t, os.Chmod(filepath.Dir(filepath.Dir(host)), 0o755)) // all may pass it
	require.NoError(t, os.WriteFile(host, []byte("text"), 0o600))
	f, _, err = in(0).OpenPath(symbol.HostRoot, host)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = in(time.Second).OpenPath(symbol.HostRoot, host)
	require.ErrorIs(t, err, procfs.ErrNotAllowed)
	require.NoError(t, os.Chmod(host, 0o644))
	f, _, err = in(time.Second).OpenPath(symbol.HostRoot, host)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chown(source, 12345, 12345))
	_, _, err = in(0).OpenPath(symbol.TargetRoot, "/pause.c")
	require.ErrorIs(t, err, errDebugOwner)
}

// A file is opened through the sampled process, also when another one of its owner that was seen since has ended.
func TestFileSourceAfterShortProcess(t *testing.T) {
	testutil.RequireRoot(t)
	dir := filepath.Join(t.TempDir(), "dir")
	require.NoError(t, os.Mkdir(dir, 0o755))
	source, path := filepath.Join(dir, "pause.c"), filepath.Join(dir, "pause")
	require.NoError(t, os.WriteFile(source, []byte("#include <unistd.h>\nint main(void) { pause(); }\n"), 0o600))
	out, err := exec.Command("gcc", "-static", "-o", path, source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	fs := procfs.FS{Root: "/proc"}
	cmd, other := exec.Command(path), exec.Command(path)
	table, lookup := startKnown(t, fs, cmd)
	require.NoError(t, other.Start())
	files := executable.NewCache(executable.Options{FS: fs, MaxFiles: 10})
	t.Cleanup(files.Close)
	text := func(pid int) executable.Mapping {
		for raw, err := range fs.Mappings(pid) {
			require.NoError(t, err)
			if raw.Path == path && raw.Perms&procfs.PermExec != 0 {
				m, err := files.Map(pid, executable.Owner{}, &raw, nil)
				require.NoError(t, err)
				return m
			}
		}
		require.Fail(t, "no code")
		return executable.Mapping{}
	}
	m := text(cmd.Process.Pid)
	text(other.Process.Pid)
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	require.NoError(t, os.Rename(dir, dir+".elsewhere"), "as if seen from another root")
	f, _, err := fileSource{m.File, &m, &process.Info{}, lookup(0), table, fs}.Open()
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, _, err = fileSource{m.File, &m, &process.Info{}, lookup(time.Second), table, fs}.Open()
	require.ErrorIs(t, err, executable.ErrNotOpened, "another process has the PID")
}

// A process all of whose code is of ELF files is not asked for the names of what it has
// generated.
func TestGenerated(t *testing.T) {
	elf := executable.NewFile(procfs.FileID{Inode: 1}, "/bin/program", executable.Facts{}, nil)
	file := executable.Mapping{Path: "/bin/program", File: elf, Biased: true}
	jvm := executable.Mapping{Path: "/usr/lib/libjvm.so", File: elf, Biased: true}
	vsyscall := executable.Mapping{Start: 0xffffffffff600000}
	memory := executable.Mapping{Start: 0x10000}
	other := executable.Mapping{Path: "/memfd:code", File: elf}
	s := &symbolizer{wrote: map[*process.Info]generated{}}
	for want, mappings := range map[generated][]executable.Mapping{
		{language: symbol.Native}:            {file, file, vsyscall},
		{language: symbol.JVM}:               {file, jvm},
		{any: true, language: symbol.Native}: {file, memory, file},
		{any: true, language: symbol.JVM}:    {jvm, memory},
	} {
		require.Equal(t, want, s.generated(&process.Info{Mappings: mappings}))
	}
	require.True(t, s.generated(&process.Info{Mappings: []executable.Mapping{file, other}}).any, "a file that is no ELF file")
}

// Functions of a Go program at all addresses that are expected are read together.
func TestExpectedFunctions(t *testing.T) {
	const pause = "CUSTOM_LABELS_TEST_PAUSE"
	if os.Getenv(pause) != "" {
		select {}
	}
	fs := procfs.FS{Root: "/proc"}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), pause+"=1")
	table, lookup := startKnown(t, fs, cmd)
	files := executable.NewCache(executable.Options{FS: fs, MaxFiles: 100, MaxDescriptors: 100})
	t.Cleanup(files.Close)
	info := &process.Info{Loaded: true}
	var text *executable.Mapping
	require.Eventually(t, func() bool {
		info.Mappings = nil
		for raw, err := range fs.Mappings(cmd.Process.Pid) {
			require.NoError(t, err)
			if raw.Perms&procfs.PermExec == 0 {
				continue
			}
			m, err := files.Map(cmd.Process.Pid, executable.Owner{}, &raw, nil)
			require.NoError(t, err)
			info.Mappings = append(info.Mappings, m)
		}
		if n := len(info.Mappings); n > 0 && info.Mappings[0].File != nil {
			text = &info.Mappings[0]
			return true
		}
		return false
	}, time.Minute, time.Millisecond)
	works := 0
	s := &symbolizer{
		table: table, fs: fs, wrote: map[*process.Info]generated{},
		files: symbol.NewCache[procfs.FileID](symbol.CacheOptions{Wait: time.Minute, Work: func(_ uint32, do func()) { works++; do() }}),
		maps:  symbol.NewPerfMaps[uint64](symbol.CacheOptions{}),
	}
	defer s.release()
	p := lookup(0)
	var addrs []uint64
	for addr := text.Start + 1<<20; len(addrs) < 64; addr += 999 {
		addrs = append(addrs, addr, 1, addr, 1<<62) // some twice, some in no mapping
	}
	slices.Reverse(addrs)
	asked := slices.Clone(addrs)
	s.expect(p, info, 0, asked)
	require.Equal(t, 2, works, "the file and the addresses")
	named := 0
	for _, addr := range addrs {
		if m := info.MappingIn(0, addr); m != nil {
			lines, of := s.lines(nil, p, info, m, addr)
			named += len(lines)
			require.Equal(t, frameGo, of)
		}
	}
	require.NotZero(t, named)
	require.Equal(t, 2, works)
	(*symbolizer)(nil).expect(p, info, 0, asked)
}
