//go:build linux

package executable

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// fakeTables remembers what the sampling programs were given.
type fakeTables struct {
	full   error // of AddUnwindTable, as long as it has more than most tables
	most   int
	next   record.TableID
	tables map[record.TableID]*record.UnwindTable
	files  map[record.FileKey]record.TableID
}

func (r *fakeTables) AddUnwindTable(t *record.UnwindTable) (record.TableID, error) {
	if r.full != nil && len(r.tables) >= r.most {
		return 0, fmt.Errorf("add unwind table: %w", r.full)
	}
	r.next++
	r.tables[r.next] = &record.UnwindTable{Base: t.Base, Rules: t.Rules, Index: slices.Clone(t.Index), Rows: slices.Clone(t.Rows)}
	return r.next, nil
}

func (r *fakeTables) RemoveUnwindTable(id record.TableID) error {
	delete(r.tables, id)
	return nil
}

func (r *fakeTables) RemoveFileRows(file record.FileKey, id record.TableID) error {
	if r.files[file] == id {
		delete(r.files, file)
	}
	return nil
}

func (r *fakeTables) SetFileRows(file record.FileKey, id record.TableID, _ []record.FileText) error {
	r.files[file] = id
	return nil
}

// rowsFake has rows that are built when the test says so, of files that real processes map.
type rowsFake struct {
	*Rows
	t       *testing.T
	cache   *Cache
	rec     *fakeTables
	clock   atomic.Int64
	told    []uint64 // handles
	running map[int][]*File
}

func newRowsFake(t *testing.T, name func(*os.File) (record.FileKey, error)) *rowsFake {
	f := &rowsFake{t: t, running: map[int][]*File{}}
	f.clock.Store(1e9)
	f.rec = &fakeTables{tables: map[record.TableID]*record.UnwindTable{}, files: map[record.FileKey]record.TableID{}}
	f.cache = NewCache(Options{FS: procfs.FS{Root: "/proc"}, NameFile: name, MaxFiles: 100, MaxDescriptors: 100})
	t.Cleanup(f.cache.Close)
	f.Rows = NewRows(RowsOptions{
		Tables: f.rec, MaxBytes: 64 << 20, Now: f.clock.Load, Logger: zap.NewNop(),
		Changed: func(handles []uint64) {
			f.told = append(f.told, handles...)
			for _, pid := range handles {
				f.ask(int(pid)) // as a process does that is told
			}
		},
	})
	return f
}

// start runs a program until it has mapped its libraries, and returns its files, in use.
func (f *rowsFake) start(path string) (files []*File, cmd *exec.Cmd) {
	f.t.Helper()
	cmd = f.startOnly(path)
	pid := cmd.Process.Pid
	for raw, err := range (procfs.FS{}).Mappings(pid) {
		require.NoError(f.t, err)
		if raw.Perms&procfs.PermExec == 0 {
			continue
		}
		m, err := f.cache.Map(pid, Owner{}, &raw, nil)
		require.NoError(f.t, err)
		if m.File != nil {
			m.File.Use(1)
			files = append(files, m.File)
		}
	}
	f.running[pid] = files
	return files, cmd
}

// startOnly runs a program until it has mapped its libraries.
func (f *rowsFake) startOnly(path string) *exec.Cmd {
	f.t.Helper()
	cmd := exec.Command(path, "60")
	require.NoError(f.t, cmd.Start())
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	code := regexp.MustCompile(`r-xp .*libc\.so`)
	require.Eventually(f.t, func() bool {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid))
		return err == nil && code.Match(maps)
	}, time.Minute, time.Millisecond)
	return cmd
}

// ask asks for the rows of the files of a process.
func (f *rowsFake) ask(pid int) {
	for _, file := range f.running[pid] {
		f.Of(file, Waiter{Handle: uint64(pid)})
	}
}

// end ends a process.
func (f *rowsFake) end(cmd *exec.Cmd) {
	require.NoError(f.t, cmd.Process.Kill())
	_ = cmd.Wait()
	for _, file := range f.running[cmd.Process.Pid] {
		file.Use(-1)
	}
	f.cache.EndInterval()
}

// buildAll builds the rows that are wanted, and returns of how many files.
func (f *rowsFake) buildAll() (built int) {
	for f.Build() {
		built++
	}
	return built
}

// Rows stay within their bytes: what finds no room is refused, and asked for
// again when there is some. Who waits is told in any case.
func TestRowsBounded(t *testing.T) {
	f := newRowsFake(t, nil)
	f.opts.MaxBytes = 1
	_, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	n := f.buildAll()
	require.NotZero(t, n)
	require.Len(t, f.told, n)
	require.Empty(t, f.rec.tables)
	require.EqualValues(t, n, f.Stats().Refused)
	f.opts.MaxBytes = 64 << 20
	f.ask(cmd.Process.Pid)
	require.Zero(t, f.buildAll(), "nothing has been released")
	f.released++
	f.ask(cmd.Process.Pid)
	require.Equal(t, n, f.buildAll())
	require.Len(t, f.rec.tables, n)
	require.EqualValues(t, n, f.Stats().Built)
}

// Rows that the kernel has no room for are refused for a while, and not for good.
func TestRowsKernelFull(t *testing.T) {
	for _, full := range []error{unix.ENOMEM, unix.ENOSPC, unix.EMFILE} {
		f := newRowsFake(t, nil)
		f.rec.full = full
		_, cmd := f.start("sleep")
		f.ask(cmd.Process.Pid)
		n := f.buildAll()
		require.NotZero(t, n)
		require.Empty(t, f.rec.tables)
		require.EqualValues(t, n, f.Stats().Refused)
		require.Zero(t, f.Stats().Failed)
		f.rec.full = nil
		f.clock.Add(int64(retryRows) - 1)
		f.ask(cmd.Process.Pid)
		require.Zero(t, f.buildAll())
		f.clock.Add(1)
		f.ask(cmd.Process.Pid)
		require.Equal(t, n, f.buildAll())
		require.Len(t, f.rec.tables, n)
	}
}

// Rows that no process needs make room in the kernel.
func TestRowsIdleMakeKernelRoom(t *testing.T) {
	f := newRowsFake(t, nil)
	_, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	f.buildAll()
	f.end(cmd)
	f.rec.full, f.rec.most = unix.ENOSPC, len(f.rec.tables)
	idle := f.rec.next
	id, err := f.add(&record.UnwindTable{})
	require.NoError(t, err)
	require.Equal(t, idle+1, id)
	require.Len(t, f.rec.tables, f.rec.most)
}

// When the last process has gone, its rows make room for others at once, and go
// by themselves after a while.
func TestRowsReleased(t *testing.T) {
	for _, needed := range []bool{false, true} {
		f := newRowsFake(t, nil)
		_, cmd := f.start("sleep")
		f.ask(cmd.Process.Pid)
		f.buildAll()
		loaded := len(f.rec.tables)
		require.NotZero(t, loaded)
		f.sweep()
		f.clock.Add(int64(2 * keepRows))
		f.sweep()
		require.Len(t, f.rec.tables, loaded, "in use")

		f.end(cmd)
		f.sweep()
		require.Len(t, f.rec.tables, loaded, "for a while")
		if needed {
			require.False(t, f.roomFor(f.opts.MaxBytes+1, 0))
		} else {
			f.clock.Add(int64(keepRows))
			f.sweep()
		}
		require.Empty(t, f.rec.tables)
		stats := f.Stats()
		require.Zero(t, stats.Files+stats.Bytes)
	}
}

// A builder that waits for a CPU, or uses one, does not hang.
func TestBuilderIsSlow(t *testing.T) {
	f := newRowsFake(t, nil)
	b := &builder{}
	b.sinceNs.Store(f.clock.Load())
	f.clock.Add(int64(stuckAfter) + 1)
	var ended atomic.Bool
	defer ended.Store(true)
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // and ends with it
		thread <- procfs.Thread()
		for !ended.Load() {
			continue
		}
	}()
	b.thread.Store(int32(<-thread))
	require.Eventually(t, func() bool { return !f.hangs([]*builder{b}) }, time.Minute, time.Millisecond)
	b.stuck.Store(false)
	require.False(t, f.hangs([]*builder{b}))
}

// Who ends what does not answer needs its names.
func TestBuilderHangsByName(t *testing.T) {
	f := newRowsFake(t, nil)
	core, logs := observer.New(zap.WarnLevel)
	f.opts.Logger = zap.New(core)
	b := &builder{}
	file := &File{path: "/mnt/away/program"}
	file.places.see(place{pid: 42, owner: Owner{UID: 7, Container: "c"}})
	file.places.see(place{pid: 43, owner: Owner{UID: 8}})
	f.Of(file, Waiter{Handle: 1, UID: 7})
	b.file.Store(file)
	b.uid.Store(7)
	b.sinceNs.Store(f.clock.Load())
	f.clock.Add(int64(stuckAfter) + 1)
	require.True(t, f.hangs([]*builder{b}))
	require.Equal(t, map[string]any{"file": "/mnt/away/program", "pid": int64(42), "uid": uint32(7), "container": "c", "others": int64(0)},
		logs.All()[0].ContextMap())
}

// A file that blocks whoever reads it costs the goroutine that does, a bounded number of times.
func TestBuilderHangs(t *testing.T) {
	f := newRowsFake(t, nil)
	var builders []*builder
	for n := range maxStuck + 1 {
		b := &builder{}
		builders = append(builders, b)
		require.False(t, f.hangs(builders), "it has nothing to do")
		b.sinceNs.Store(f.clock.Load())
		f.clock.Add(int64(stuckAfter))
		require.False(t, f.hangs(builders))
		f.clock.Add(1)
		require.Equal(t, n < maxStuck, f.hangs(builders))
		require.EqualValues(t, min(n+1, maxStuck), f.Stats().Stuck)
	}
	require.False(t, builders[maxStuck].stuck.Load())
	builders[3].sinceNs.Store(0)
	require.True(t, builders[3].ended())
	require.True(t, f.hangs(builders), "one has ended after all")
}

// Run builds what is asked for, and ends with its context.
func TestRowsRun(t *testing.T) {
	f := newRowsFake(t, nil)
	f.opts.Now = func() int64 { return time.Now().UnixNano() }
	changed := make(chan struct{}, 100)
	f.opts.Changed = func([]uint64) { changed <- struct{}{} }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	files, cmd := f.start("sleep")
	f.ask(cmd.Process.Pid)
	for range files {
		<-changed
	}
	cancel()
	<-done
	stats := f.Stats()
	require.Zero(t, stats.Waiting)
	require.GreaterOrEqual(t, stats.Built, uint64(3), "sleep, libc, ld.so, maybe the vDSO")
}

// What a large file has taken holds up large files only.
func TestLargeFilesWait(t *testing.T) {
	r := NewRows(RowsOptions{})
	files := map[string]*File{"large": {}, "larger": {}, "small": {}}
	for name, size := range map[string]int64{"large": smallFile + 1, "larger": smallFile + 2, "small": smallFile} {
		files[name].key.Size = size
	}
	var times buildTimes
	next := func(now int64) (*File, int64) { return r.next(&times, now) }
	for _, name := range []string{"large", "larger"} {
		r.Of(files[name], Waiter{Handle: 1})
	}
	f, _ := next(0)
	require.Same(t, files["large"], f)
	*times.of(f) = 1000
	f, wait := next(100)
	require.Nil(t, f)
	require.EqualValues(t, 900, wait)
	r.Of(files["small"], Waiter{Handle: 1})
	f, _ = next(100)
	require.Same(t, files["small"], f)
	f, _ = next(1000)
	require.Same(t, files["larger"], f)
	_, wait = next(1000)
	require.EqualValues(t, -1, wait)
}

// The file that most processes wait for comes first, of these the smallest.
func TestMostWantedFirst(t *testing.T) {
	r := NewRows(RowsOptions{})
	small, large, wanted := &File{}, &File{}, &File{}
	small.key.Size, large.key.Size, wanted.key.Size = 1, 2, 3
	for handle, f := range []*File{large, small, wanted, wanted} {
		r.Of(f, Waiter{Handle: uint64(handle + 1)})
	}
	for _, want := range []*File{wanted, small, large} {
		f, _ := r.next(&buildTimes{}, 0)
		require.Same(t, want, f)
	}
}

// A user for whom building takes long waits for others, who do not wait for him. A file that both
// want does not wait.
func TestRowsOfUsersTakeTurns(t *testing.T) {
	r := NewRows(RowsOptions{Now: func() int64 { return 0 }})
	const flooder, other = 1, 2
	many, shared, one := &File{}, &File{}, &File{}
	many.key.Size, shared.key.Size, one.key.Size = 1, 2, 3
	ask := func() {
		for handle := range uint64(10) {
			r.Of(many, Waiter{Handle: 1 + handle, UID: flooder})
		}
		r.Of(shared, Waiter{Handle: 1, UID: flooder})
		r.Of(shared, Waiter{Handle: 11, UID: other})
		r.Of(one, Waiter{Handle: 11, UID: other})
	}
	order := func() (files []*File) {
		for {
			f, _ := r.next(&buildTimes{}, 0)
			if f == nil {
				return files
			}
			f.rows = fileRows{}
			files = append(files, f)
		}
	}
	ask()
	require.Equal(t, []*File{many, shared, one}, order(), "nobody has taken much")
	r.spend(flooder, turnTime)
	ask()
	require.Equal(t, []*File{shared, one, many}, order())
	r.spend(other, turnTime)
	ask()
	require.Equal(t, []*File{many, shared, one}, order(), "both have")
}

// What was built for a user a while ago does not count any more.
func TestSpentIsForgotten(t *testing.T) {
	now := int64(0)
	r := NewRows(RowsOptions{Now: func() int64 { return now }})
	r.spend(1, 8*turnTime)
	r.spend(2, turnTime/2)
	now = 2 * spentHalves
	r.spend(3, 1)
	require.Equal(t, map[uint32]int64{1: 2 * turnTime, 3: 1}, r.shares.spent)
	now = 100 * spentHalves
	r.spend(4, 1)
	require.Equal(t, map[uint32]int64{4: 1}, r.shares.spent)
}

// A user whose files do not answer has no more of them opened, which takes none from others.
func TestStuckFilesOfUser(t *testing.T) {
	f := newRowsFake(t, nil)
	const hanging, other = 1, 2
	var builders []*builder
	for range maxStuckOfUser {
		f.Of(&File{}, Waiter{Handle: 1, UID: hanging})
		file, _ := f.next(&buildTimes{}, 0)
		require.NotNil(t, file)
		b := &builder{}
		b.uid.Store(file.rows.uid)
		b.sinceNs.Store(f.clock.Load())
		builders = append(builders, b)
		f.clock.Add(int64(stuckAfter) + 1)
		require.True(t, f.hangs(builders))
	}
	own, others, both := &File{}, &File{}, &File{}
	f.Of(own, Waiter{Handle: 1, UID: hanging})
	file, wait := f.next(&buildTimes{}, 0)
	require.Nil(t, file)
	require.EqualValues(t, -1, wait)
	f.Of(others, Waiter{Handle: 2, UID: other})
	f.Of(both, Waiter{Handle: 1, UID: hanging})
	f.Of(both, Waiter{Handle: 2, UID: other})
	for _, want := range []*File{both, others, nil} {
		file, _ = f.next(&buildTimes{}, 0)
		require.Equal(t, want, file)
	}
	func() { f.mu.Lock(); defer f.mu.Unlock(); f.unstick(hanging) }()
	file, _ = f.next(&buildTimes{}, 0)
	require.Same(t, own, file)
	for range maxStuckOfUser - 1 {
		func() { f.mu.Lock(); defer f.mu.Unlock(); f.unstick(hanging) }()
	}
	require.Empty(t, f.shares.stuck)
}

// A file that does not answer through one user's process has its rows made through another's.
func TestFileAnswersThroughAnother(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	pid := uint64(cmd.Process.Pid)
	const hanging, other = 1, 2
	f.Of(files[0], Waiter{Handle: pid, UID: hanging})
	file, _ := f.next(&buildTimes{}, 0)
	b := &builder{}
	b.sinceNs.Store(f.clock.Load())
	asked, asker, _ := f.begin(file, b)
	f.running = nil // who is told asks later
	f.clock.Add(int64(stuckAfter) + 1)
	require.True(t, f.hangs([]*builder{b}))
	require.Equal(t, []uint64{pid}, f.told)
	f.Of(files[0], Waiter{Handle: pid, UID: hanging})
	require.Empty(t, f.wanted, "not at once, through the same process")

	files[0].places.see(place{pid: int(pid), owner: Owner{UID: other}, mapping: files[0].places.all()[0].mapping})
	f.Of(files[0], Waiter{Handle: pid, UID: other})
	require.Equal(t, []*File{files[0]}, f.wanted)
	f.build(t.Context(), file, asked, asker, b) // it answers after all: that is too late
	require.Empty(t, f.rec.tables)
	require.Equal(t, rowsWanted, files[0].rows.state)
	require.True(t, f.Build())
	require.Equal(t, rowsReady, files[0].rows.state)
	require.Len(t, f.rec.tables, 1)
}

// A file that a user asks for who has as many that do not answer as he may have is opened through the process of another
// one who waits for it.
func TestFileIsOpenedThroughAnother(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	pid := uint64(cmd.Process.Pid)
	const hanging, second, third = 1, 2, 3
	mapping := &Mapping{Path: "/of/second"}
	f.Of(files[0], Waiter{Handle: pid, UID: hanging, PID: 1, Mapping: &Mapping{Path: "/hangs"}})
	f.Of(files[0], Waiter{Handle: pid + 1, UID: second, PID: 2, Mapping: mapping})
	f.Of(files[0], Waiter{Handle: pid + 1, UID: second, PID: 3, Mapping: &Mapping{}})
	f.Of(files[0], Waiter{Handle: pid + 2, UID: third, PID: 4, Mapping: &Mapping{}})
	require.Len(t, files[0].rows.others, 2, "one of each user")
	f.shares.stuck[hanging] = maxStuckOfUser
	file, _ := f.next(&buildTimes{}, 0)
	require.Same(t, files[0], file)
	b := &builder{}
	asked, asker, uid := f.begin(file, b)
	require.Same(t, files[0], asked)
	require.EqualValues(t, second, uid)
	require.EqualValues(t, second, b.uid.Load(), "it counts for him if it does not answer")
	require.Equal(t, mapping.AskedFor(2, Owner{UID: second}), asker)
	f.build(t.Context(), file, asked, asker, b)
	require.Empty(t, file.rows.others)
}

// However many users are at their bound, one more who waits has the file built.
func TestFileOfManyUsers(t *testing.T) {
	f := newRowsFake(t, nil)
	file := &File{}
	for uid := range uint32(maxOthers + 3) {
		f.Of(file, Waiter{Handle: uint64(uid) + 1, UID: uid})
	}
	require.Len(t, file.rows.others, maxOthers)
	got, _ := f.next(&buildTimes{}, 0)
	require.Zero(t, got.rows.uid, "who has asked first")
	f.wanted = append(f.wanted, got)
	for uid := range uint32(maxStuck / maxStuckOfUser) {
		f.shares.stuck[uid] = maxStuckOfUser
	}
	got, _ = f.next(&buildTimes{}, 0)
	require.Same(t, file, got)
	require.EqualValues(t, maxOthers, got.rows.uid)
}

// A file that answers late has its rows, if nobody has asked for them meanwhile.
func TestFileAnswersLate(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	f.running = nil
	f.Of(files[0], Waiter{Handle: uint64(cmd.Process.Pid), UID: 1})
	file, _ := f.next(&buildTimes{}, 0)
	b := &builder{}
	b.sinceNs.Store(1)
	asked, asker, _ := f.begin(file, b)
	_, handles, gaveUp := f.giveUp(b, 1)
	require.True(t, gaveUp)
	require.Len(t, handles, 1)
	f.build(t.Context(), file, asked, asker, b)
	require.Equal(t, rowsReady, file.rows.state)
}

// A file that answers after it was asked for again, and was forgotten as nobody mapped it, has rows that its next
// process can use, and that are whose process it was read for.
func TestFileAnswersWhenForgotten(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	f.running = nil
	const reading, next = 1, 2
	f.Of(files[0], Waiter{Handle: uint64(cmd.Process.Pid), UID: reading})
	file, _ := f.next(&buildTimes{}, 0)
	b := &builder{}
	b.sinceNs.Store(1)
	asked, asker, _ := f.begin(file, b)
	_, _, gaveUp := f.giveUp(b, 1)
	require.True(t, gaveUp)
	f.clock.Add(int64(retryRows))
	f.Of(files[0], Waiter{Handle: uint64(cmd.Process.Pid), UID: reading})
	require.Equal(t, []*File{file}, f.wanted)
	file.Use(-1)
	f.sweep()
	f.clock.Add(int64(keepRows))
	f.sweep()
	require.Empty(t, f.wanted)

	f.build(t.Context(), file, asked, asker, b)
	file.Use(1)
	rows, ok := f.Of(files[0], Waiter{Handle: uint64(cmd.Process.Pid), UID: next})
	require.True(t, ok)
	require.NotZero(t, rows.ID)
	require.EqualValues(t, reading, file.rows.uid)
	require.Equal(t, map[uint32]struct{}{reading: {}, next: {}}, file.rows.users)
}

// A builder that was given up before it had a file still has its next one's rows used.
func TestBuilderHangsWithoutFile(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	f.running = nil
	b := &builder{}
	b.sinceNs.Store(1)
	_, _, gaveUp := f.giveUp(b, 1)
	require.True(t, gaveUp)
	f.Of(files[0], Waiter{Handle: uint64(cmd.Process.Pid), UID: 1})
	built, _ := f.buildNext(t.Context(), &buildTimes{}, b)
	require.True(t, built)
	require.Equal(t, rowsReady, files[0].rows.state)

	_, handles, gaveUp := f.giveUp(b, 1) // just before it notes that it has done with the file
	require.True(t, gaveUp)
	require.Empty(t, handles)
	require.Equal(t, rowsReady, files[0].rows.state)
}

// Where there is no room for rows that one user wants, there may be for another who maps the same file.
func TestRefusedToOneUser(t *testing.T) {
	f := newRowsFake(t, nil)
	files, cmd := f.start("/bin/sleep")
	f.running = nil
	pid := uint64(cmd.Process.Pid)
	const many, few = 1, 2
	f.opts.MaxBytes = 8 << 20
	f.addRows(many, 4<<20)
	f.addRows(many, 4<<20)
	for _, uid := range []uint32{many, few} {
		f.Of(files[1], Waiter{Handle: pid, UID: uid})
	}
	require.True(t, f.Build())
	require.Equal(t, rowsReady, files[1].rows.state, "whoever has asked first")
	require.EqualValues(t, few, files[1].rows.uid)
	f.addRows(many, 4<<20)
	f.Of(files[0], Waiter{Handle: pid, UID: many})
	require.True(t, f.Build())
	require.Equal(t, rowsRefused, files[0].rows.state)
	f.Of(files[0], Waiter{Handle: pid, UID: many})
	require.Empty(t, f.wanted, "there is no more room than before")
	f.Of(files[0], Waiter{Handle: pid, UID: few})
	require.Equal(t, []*File{files[0]}, f.wanted)
	f.Of(files[0], Waiter{Handle: pid, UID: many})
	require.True(t, f.Build())
	require.Equal(t, rowsReady, files[0].rows.state)
	require.EqualValues(t, few, files[0].rows.uid)
}

// A user with many rows makes room for one with few, as far as that leaves both the same, first
// with rows that nobody else wants.
func TestRowsOfUsersShareRoom(t *testing.T) {
	f := newRowsFake(t, nil)
	f.opts.MaxBytes = 100
	const flooder, other, third = 1, 2, 3
	shared, small, large := f.addRows(flooder, 30, other), f.addRows(flooder, 20), f.addRows(flooder, 50)
	require.False(t, f.roomFor(100, other), "more than the other would keep")
	require.Len(t, f.ready, 3, "and so nobody loses any")
	require.False(t, f.roomFor(1, flooder), "his own room")
	require.True(t, f.roomFor(10, other))
	require.Equal(t, rowsRefused, large.rows.state)
	require.NotContains(t, f.ready, large)
	require.Len(t, f.rec.tables, 2, "it was removed from the kernel")
	require.EqualValues(t, 1, f.Stats().Refused)
	f.addRows(other, 40)
	rows, ok := f.Of(large, Waiter{Handle: 1, UID: flooder})
	require.True(t, ok)
	require.Zero(t, rows)
	require.Empty(t, f.wanted, "not before there is room again")
	require.True(t, f.roomFor(20, third))
	require.Equal(t, rowsRefused, small.rows.state, "rather than the one that others want")
	require.Equal(t, rowsReady, shared.rows.state)
}

// addRows has a file in use whose rows are there, a table of its own.
func (f *rowsFake) addRows(uid uint32, bytes int, users ...uint32) *File {
	file := &File{}
	file.users.Add(1)
	f.rec.next++
	f.rec.tables[f.rec.next] = nil
	f.hold(f.rec.next, bytes, [sha256.Size]byte{byte(f.rec.next)})
	file.rows = fileRows{FileRows: FileRows{ID: f.rec.next}, state: rowsReady, uid: uid, users: map[uint32]struct{}{uid: {}}}
	for _, u := range users {
		file.rows.users[u] = struct{}{}
	}
	f.ready[file] = struct{}{}
	return file
}

// Tables stay within their number: those of files that nobody maps make room; what finds none is refused,
// and asked for again when there is some.
func TestRowsTablesBounded(t *testing.T) {
	f := newRowsFake(t, nil)
	_, cmd := f.start("sleep")
	f.opts.MaxTables = 1
	other := f.addRows(0, 10)
	f.ask(cmd.Process.Pid)
	n := f.buildAll()
	require.Greater(t, n, 1, "a program and its libraries")
	require.Zero(t, f.Stats().Built, "the only table is in use")
	require.EqualValues(t, n, f.Stats().Refused)
	f.ask(cmd.Process.Pid)
	require.Zero(t, f.buildAll(), "nothing has been released")

	f.remove(other)
	f.ask(cmd.Process.Pid)
	require.Equal(t, n, f.buildAll(), "they are tried again")
	require.EqualValues(t, 1, f.Stats().Built)
	require.EqualValues(t, 2*n-1, f.Stats().Refused)
	require.Len(t, f.rec.tables, 1)

	f.opts.MaxTables = n
	idle := make([]*File, n-1)
	for i := range idle {
		idle[i] = f.addRows(0, 10)
		idle[i].Use(-1)
		f.idle(f.clock.Add(1))
	}
	f.released++
	for left := range idle {
		require.Len(t, f.rec.tables, n)
		f.ask(cmd.Process.Pid)
		require.True(t, f.Build())
		require.NotContains(t, f.ready, idle[left], "it made room")
		require.Subset(t, slices.Collect(maps.Keys(f.ready)), idle[left+1:], "the longest idle first")
	}
	require.EqualValues(t, n, f.Stats().Built)
	require.Len(t, f.rec.tables, n)
}

// No table at all is a bound, too; without one it is that of the kernel's list.
func TestRowsNoTables(t *testing.T) {
	require.Equal(t, record.MaxUnwindTables, NewRows(RowsOptions{}).opts.MaxTables)
	f := newRowsFake(t, nil)
	f.opts.MaxTables = -1
	require.False(t, f.roomFor(1, 0))
}

// A user with many tables makes room for one with few, as with bytes; files that share a table have a
// part of it each.
func TestTablesOfUsersShareRoom(t *testing.T) {
	f := newRowsFake(t, nil)
	f.opts.MaxTables = 3
	const flooder, other = 1, 2
	copies := []*File{f.addRows(flooder, 1)}
	for range 2 {
		file := &File{}
		file.users.Add(1)
		file.rows = copies[0].rows
		_, ok := f.share([sha256.Size]byte{byte(file.rows.ID)})
		require.True(t, ok)
		f.ready[file] = struct{}{}
		copies = append(copies, file)
	}
	f.addRows(flooder, 20)
	f.addRows(flooder, 50)
	require.False(t, f.roomFor(1, flooder), "his own room")
	require.True(t, f.roomFor(1, other))
	require.Subset(t, slices.Collect(maps.Keys(f.ready)), copies, "fewer that are not shared")
	require.Len(t, f.ready, 4)
	require.Len(t, f.rec.tables, 2, "it was removed from the kernel")
	require.EqualValues(t, 1, f.Stats().Refused)
	f.addRows(other, 1)
	require.False(t, f.roomFor(1, other), "the flooder would have one and he two")
	require.Len(t, f.ready, 5)
	f.opts.MaxTables = 2
	require.False(t, f.roomFor(1, flooder))
	require.Len(t, f.ready, 5)
}

// Those rows go first that nobody has needed for the longest time.
func TestLongestIdleFirst(t *testing.T) {
	r := NewRows(RowsOptions{})
	files := []*File{{}, {}, {}, {}}
	for i, since := range []int64{30, 10, 20, 5} {
		files[i].rows = fileRows{state: rowsReady, idleSince: since}
		r.ready[files[i]] = struct{}{}
	}
	files[3].users.Add(1)
	require.Equal(t, []*File{files[1], files[2], files[0]}, r.idle(100))
	require.Zero(t, files[3].rows.idleSince, "it is in use again")
}

// A file that cannot be built, as its user's others hang, is not kept when nobody maps it any more; one
// that is asked for again and again is.
func TestWantedIsForgotten(t *testing.T) {
	f := newRowsFake(t, nil)
	const hanging = 1
	f.shares.stuck[hanging] = maxStuckOfUser
	gone, mapped, again := &File{}, &File{}, &File{}
	mapped.Use(1)
	for _, file := range []*File{gone, mapped, again} {
		f.Of(file, Waiter{Handle: 1, UID: hanging})
	}
	for h := range uint64(4) {
		f.sweep()
		f.clock.Add(int64(keepRows) / 2)
		f.Of(again, Waiter{Handle: 2 + h, UID: hanging})
	}
	require.Len(t, again.rows.waiting, 5)
	require.Equal(t, []*File{mapped, again}, f.wanted)
	f.Of(gone, Waiter{Handle: 1, UID: hanging})
	require.Equal(t, []*File{mapped, again, gone}, f.wanted, "the next process may have it built")
}

// What waits for rows is bounded: files, and the processes that are told.
func TestWantedIsBounded(t *testing.T) {
	f := newRowsFake(t, nil)
	one, more := &File{}, &File{}
	for h := range uint64(maxWaiting + 2) {
		f.Of(one, Waiter{Handle: h + 1, UID: uint32(h)})
	}
	require.Len(t, one.rows.waiting, maxWaiting)
	require.Len(t, one.rows.users, maxWaiting)
	for range maxWanted {
		f.Of(&File{}, Waiter{Handle: 1, UID: 7})
	}
	require.Len(t, f.wanted, 1+maxWanted/2, "a user leaves half to others")
	for range maxWanted/2 - 1 {
		f.Of(&File{}, Waiter{Handle: 1, UID: 8})
	}
	f.Of(more, Waiter{Handle: 1})
	require.Len(t, f.wanted, maxWanted)
	require.EqualValues(t, maxWanted/2+1, f.Stats().Refused)
	f.wanted = f.wanted[:1]
	f.Of(more, Waiter{Handle: 1})
	require.Len(t, f.wanted, 1, "not at once")
	f.clock.Add(int64(retryRows))
	f.Of(more, Waiter{Handle: 1})
	require.Len(t, f.wanted, 2)
}

// A file that answers just when its builder is given up takes no place from its user.
func TestBuilderAnswersInTime(t *testing.T) {
	f := newRowsFake(t, nil)
	b := &builder{}
	b.uid.Store(1)
	b.sinceNs.Store(5)
	f.finished(b)
	_, _, gaveUp := f.giveUp(b, 5)
	require.False(t, gaveUp)
	require.False(t, b.stuck.Load())
	b.sinceNs.Store(6)
	_, _, gaveUp = f.giveUp(b, 6)
	require.True(t, gaveUp)
	require.Equal(t, map[uint32]int{1: 1}, f.shares.stuck)
	b.uid.Store(2)
	f.finished(b)
	require.Empty(t, f.shares.stuck)
}

// What a file takes beyond a piece holds up the files of its user, and not those of others.
func TestLongBuildHoldsUpItsUser(t *testing.T) {
	f := newRowsFake(t, nil)
	files, _ := f.start("sleep")
	const user, other = 1, 2
	f.Of(files[0], Waiter{Handle: 1, UID: user})
	calls := 0
	f.cpuTime = func() int64 {
		if calls++; calls == 1 {
			return 0
		}
		return 4 * buildPiece
	}
	var times buildTimes
	now := f.clock.Load()
	built, _ := f.buildNext(t.Context(), &times, &builder{})
	require.True(t, built)
	require.Equal(t, now+3*buildPiece, *times.of(files[0]))

	mine, theirs, both, large := &File{}, &File{}, &File{}, &File{}
	large.key.Size = smallFile + 1
	f.Of(mine, Waiter{Handle: 1, UID: user})
	f.Of(large, Waiter{Handle: 1, UID: user})
	next := func(want *File, after, wait int64) {
		t.Helper()
		got, waits := f.next(&times, now+after)
		require.Equal(t, want, got)
		require.Equal(t, wait, waits)
	}
	next(large, 0, 0)
	f.Of(theirs, Waiter{Handle: 2, UID: other})
	f.Of(both, Waiter{Handle: 1, UID: user})
	f.Of(both, Waiter{Handle: 2, UID: other})
	next(nil, 0, 3*buildPiece)
	next(both, 3*buildPiece, 0)
	next(theirs, 3*buildPiece, 0)
	next(nil, 3*buildPiece, 9*buildPiece)
	next(mine, 12*buildPiece, 0)

	f.clock.Add(12 * buildPiece)
	f.pause(other, mine, buildPiece)
	require.NotContains(t, f.shares.again, uint32(other))
	f.pause(other, mine, buildPiece+1)
	require.NotContains(t, f.shares.again, uint32(user), "that is over")
}

// What is owed of files that took long is waited for by those for whom much was built lately, and by all when it is
// very much: the CPU time for all is bounded, however many users there are.
func TestDeferredRows(t *testing.T) {
	now := int64(1e9)
	cpu := budget.NewCPU(1, func() int64 { return now })
	r := NewRows(RowsOptions{CPU: cpu, Now: func() int64 { return now }})
	const user, other = 1, 2
	mine, theirs := &File{}, &File{}
	r.Of(mine, Waiter{Handle: 1, UID: user})
	r.spend(user, turnTime)
	cpu.Defer(budget.Rows, 10*time.Second)
	f, wait := r.next(&buildTimes{}, now)
	require.Nil(t, f)
	require.Positive(t, wait)
	r.Of(theirs, Waiter{Handle: 2, UID: other})
	require.Zero(t, r.delay())
	f, _ = r.next(&buildTimes{}, now)
	require.Same(t, theirs, f)
	cpu.Defer(budget.Rows, buildOwed)
	require.Positive(t, r.delay())
	now += 10 * int64(buildOwed)
	require.Zero(t, r.delay())
	f, _ = r.next(&buildTimes{}, now)
	require.Same(t, mine, f)
}
