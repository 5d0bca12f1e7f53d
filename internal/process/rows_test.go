//go:build linux

package process

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// rowsRecorder is an Unwinder that remembers.
type rowsRecorder struct {
	mu       sync.Mutex
	next     record.TableID
	tables   map[record.TableID]*record.UnwindTable
	mappings map[record.ProcessID][]record.UnwindMapping
	files    map[record.FileKey]record.TableID
	runtimes map[record.ProcessID]record.RuntimeProcess
}

func (r *rowsRecorder) AddUnwindTable(t *record.UnwindTable) (record.TableID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	r.tables[r.next] = &record.UnwindTable{Base: t.Base, Rules: t.Rules, Index: slices.Clone(t.Index), Rows: slices.Clone(t.Rows)}
	return r.next, nil
}

func (r *rowsRecorder) RemoveUnwindTable(id record.TableID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tables, id)
	return nil
}

func (r *rowsRecorder) RemoveFileRows(file record.FileKey, id record.TableID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files[file] == id {
		delete(r.files, file)
	}
	return nil
}

func (r *rowsRecorder) SetFileRows(file record.FileKey, id record.TableID, texts []record.FileText) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = map[record.FileKey]record.TableID{}
	}
	r.files[file] = id
	return nil
}

func (r *rowsRecorder) SetUnwindMappings(id record.ProcessID, mappings []record.UnwindMapping, _ uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mappings[id] = mappings
	return nil
}

func (r *rowsRecorder) SetRuntime(id record.ProcessID, runtime record.RuntimeProcess) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runtimes == nil {
		r.runtimes = map[record.ProcessID]record.RuntimeProcess{}
	}
	r.runtimes[id] = runtime
	return nil
}

func (r *rowsRecorder) ForgetMappings(id record.ProcessID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mappings, id)
	return nil
}

// rowsFake is a table over the real /proc, whose rows are built when the test says so.
type rowsFake struct {
	*fake
	rec *rowsRecorder
}

func newRowsFake(t *testing.T, maxBytes int, change ...func(*Options)) *rowsFake {
	rec := &rowsRecorder{tables: map[record.TableID]*record.UnwindTable{}, mappings: map[record.ProcessID][]record.UnwindMapping{}}
	f := newFake(t, append(change, func(o *Options) {
		o.FS = procfs.FS{Root: "/proc"}
		o.Unwinder = rec
		o.MaxRowBytes = maxBytes
	})...)
	return &rowsFake{f, rec}
}

// start runs a program without labels, and returns its identity.
func (f *rowsFake) start() (record.ProcessID, *exec.Cmd) { return f.startProgram("sleep") }

func (f *rowsFake) startProgram(path string) (record.ProcessID, *exec.Cmd) {
	cmd := exec.Command(path, "60")
	require.NoError(f.t, cmd.Start())
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// Until it has mapped its libraries.
	require.Eventually(f.t, func() bool {
		var s scratch
		return s.read(f.opts.FS, cmd.Process.Pid) == nil && slices.ContainsFunc(s.exec, func(m procfs.Mapping) bool {
			return strings.Contains(m.Path, "libc.so")
		})
	}, time.Minute, time.Millisecond)
	stat, err := f.opts.FS.Stat(cmd.Process.Pid)
	require.NoError(f.t, err)
	return record.ProcessID{TGID: uint32(cmd.Process.Pid), StartNs: stat.StartTicks*1e7 - uint64(f.bootOffset)}, cmd
}

// build makes the rows that are wanted, at most so many files.
func (f *rowsFake) build(files int) (built int) {
	for built < files && f.rows.Build() {
		built++
	}
	f.work()
	return built
}

// elsewhere has files seen last in another process, of the same owner, that has them at other paths and has ended.
func elsewhere(t *testing.T, r *reader, owner executable.Owner, pid int, end func()) {
	for raw, err := range r.opts.FS.Mappings(pid) {
		require.NoError(t, err)
		if raw.Perms&procfs.PermExec == 0 || raw.Inode == 0 {
			continue
		}
		raw.Path = "/in/another/root/" + filepath.Base(raw.Path)
		_, err := r.files.Map(pid, owner, &raw, nil)
		require.NoError(t, err)
	}
	end()
}

// Rows are made through the process that asks, also when another one of its owner that was seen since has ended.
func TestRowsAfterShortProcess(t *testing.T) {
	testutil.RequireRoot(t) // what is mapped is opened, not what has its path
	f := newRowsFake(t, 64<<20, func(o *Options) { o.MaxDescriptors = -1 })
	id, cmd := f.start()
	p := f.Lookup(id, cmd.Process.Pid, nobody, nil)
	f.work()
	_, other := f.start()
	elsewhere(t, &f.reader, p.worker().owner, other.Process.Pid, func() {
		require.NoError(t, other.Process.Kill())
		_ = other.Wait()
	})
	f.build(100)
	require.Zero(t, f.Stats().Rows.Failed)
	require.Greater(t, len(f.rec.tables), 1)
}

// The rows of a sampled process's files come one after the other, those of
// others not at all, and each file's only once.
func TestRowsOfSampled(t *testing.T) {
	f := newRowsFake(t, 64<<20)
	id, cmd := f.start()
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
	f.work()
	require.True(t, f.process(id).Info().Loaded)
	require.Zero(t, f.build(1), "not sampled")
	require.Empty(t, f.rec.mappings)

	f.Lookup(id, cmd.Process.Pid, nobody, nil)
	f.work()
	pending := f.rec.mappings[id]
	require.GreaterOrEqual(t, len(pending), 3, "sleep, libc, ld.so, maybe the vDSO")
	for _, m := range pending {
		require.Zero(t, m.Table)
	}
	require.Equal(t, 1, f.build(1))
	n := f.build(100)
	require.Zero(t, f.build(1))
	mappings := f.rec.mappings[id]
	require.Len(t, mappings, n+1)
	for i, m := range mappings {
		table := f.rec.tables[m.Table]
		require.NotNil(t, table)
		em := f.process(id).Info().Mapping(m.Start)
		require.Equal(t, em.Limit, m.Limit)
		vaddr, ok := em.Vaddr(m.Text)
		require.True(t, ok)
		require.Equal(t, table.Base, vaddr)
		require.Len(t, table.Index, int(m.Blocks)+1)
		require.True(t, i == 0 || m.Start >= mappings[i-1].Limit)
	}
	s := f.Stats()
	require.EqualValues(t, n+1, s.Rows.Built)
	require.Equal(t, n+1, s.Rows.Files)

	other, otherCmd := f.start()
	f.Lookup(other, otherCmd.Process.Pid, nobody, nil)
	f.work()
	require.Zero(t, f.build(1), "the same files")
	require.Len(t, f.rec.mappings[other], n+1)

	third, thirdCmd := f.start()
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: third, PID: thirdCmd.Process.Pid})
	f.work()
	require.Len(t, f.rec.mappings[third], n+1, "before its first sample")

	f.HandleEvent(record.Event{Kind: record.EventExit, Process: other, PID: otherCmd.Process.Pid})
	f.takeBack()
	require.NotContains(t, f.rec.mappings, other)
}

// Tables of rows are as many as the options say.
func TestRowTablesBounded(t *testing.T) {
	f := newRowsFake(t, 64<<20)
	require.Equal(t, record.MaxUnwindTables, f.opts.MaxRowTables)
	f = newRowsFake(t, 64<<20, func(o *Options) { o.MaxRowTables = 1 })
	id, cmd := f.start()
	f.Lookup(id, cmd.Process.Pid, nobody, nil)
	f.work()
	n := f.build(100)
	require.Greater(t, n, 1)
	require.Len(t, f.rec.tables, 1)
	require.EqualValues(t, n-1, f.Stats().Rows.Refused)
}

// What was said of a process's mappings is taken back though nothing was said of its
// labels, also when the exit comes before it is said.
func TestMappingsForgotten(t *testing.T) {
	for _, exitFirst := range []bool{false, true} {
		f := newRowsFake(t, 64<<20)
		id, cmd := f.start()
		f.published.err = errors.New("no room for labels")
		f.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
		f.Lookup(id, cmd.Process.Pid, nobody, nil)
		p, w := f.next()
		if exitFirst {
			f.HandleEvent(record.Event{Kind: record.EventExit, Process: id})
		}
		f.run(p, w, &f.scratch)
		f.done(p)
		if !exitFirst {
			require.NotEmpty(t, f.rec.mappings)
			f.HandleEvent(record.Event{Kind: record.EventExit, Process: id})
		}
		f.takeBack()
		require.Empty(t, f.rec.mappings)
	}
}

// A process's list is cut where the sampling programs take no more. A filtered process has none,
// rather than an empty one, and what it maps again when it is wanted.
func TestMappingsCutAndFiltered(t *testing.T) {
	f := newRowsFake(t, 1<<20)
	p := f.Lookup(image1, 42, nobody, nil)
	info := &Info{}
	file := &executable.File{}
	for i := range record.MaxUnwindMappings + 3 {
		info.Mappings = append(info.Mappings, executable.Mapping{Start: uint64(i) << 12, Limit: uint64(i+1) << 12, File: file, Biased: true})
	}
	f.publishMappings(p, info)
	require.Len(t, f.rec.mappings[image1], record.MaxUnwindMappings)
	require.EqualValues(t, 1, f.Stats().MappingsCut)
	info.Verdict = VerdictFiltered
	f.publishMappings(p, info)
	require.NotContains(t, f.rec.mappings, image1)
	f.publishMappings(p, info)
	require.NotContains(t, f.rec.mappings, image1)
	info.Verdict = VerdictWanted
	f.publishMappings(p, info)
	require.Len(t, f.rec.mappings[image1], record.MaxUnwindMappings)
}

// What was published of a process that was thought to have ended, and has entered again, is not taken back.
func TestEnteredAgainIsNotForgotten(t *testing.T) {
	f := newRowsFake(t, 64<<20)
	id, cmd := f.start()
	look := func() *Process {
		f.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
		p := f.Lookup(id, cmd.Process.Pid, nobody, nil)
		for f.advance(10 * ms); !p.Info().Loaded; f.advance(10 * ms) {
			f.work()
		}
		return p
	}
	p := look()
	require.NotEmpty(t, f.rec.mappings)
	f.mu.Lock()
	f.finish(p)
	f.mu.Unlock()
	f.EndInterval()
	f.EndInterval()
	require.NotContains(t, f.byID, id)
	again := look()
	require.NotSame(t, p, again)
	require.NotZero(t, f.takeBack())
	require.NotEmpty(t, f.rec.mappings)
	f.HandleEvent(record.Event{Kind: record.EventExit, Process: id, PID: cmd.Process.Pid})
	f.takeBack()
	require.Empty(t, f.rec.mappings)
}

// What was published of an image is taken back also when a late sample of it comes after it has left the table.
func TestLateSampleLeavesNothing(t *testing.T) {
	f := newRowsFake(t, 64<<20)
	id, cmd := f.start()
	f.HandleEvent(record.Event{Kind: record.EventExists, Process: id, PID: cmd.Process.Pid})
	p := f.Lookup(id, cmd.Process.Pid, nobody, nil)
	for f.advance(10 * ms); !p.Info().Loaded; f.advance(10 * ms) {
		f.work()
	}
	require.NotEmpty(t, f.rec.mappings)
	next := id
	next.ExecID++
	f.HandleEvent(record.Event{Kind: record.EventExec, Process: next, PID: cmd.Process.Pid, TimeNs: uint64(f.now())})
	f.EndInterval()
	f.EndInterval()
	require.NotContains(t, f.byID, id)
	late := f.Lookup(id, cmd.Process.Pid, nobody, nil)
	require.NotSame(t, p, late)
	f.takeBack()
	f.takeBack()
	require.NotContains(t, f.rec.mappings, id)
}
