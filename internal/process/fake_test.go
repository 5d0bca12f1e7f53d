//go:build linux

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// fake is a table over a /proc of plain files, with a clock that tests set.
// Nothing runs by itself: work does what is due.
type fake struct {
	*Table
	t         *testing.T
	root      string
	clock     atomic.Int64
	published *recorder
	scratch   scratch
	worker    worker
	alarm     fakeAlarm
	// startStack is that of the next image.
	startStack uint64
}

// fakeAlarm notes for when it was set; 0: not, or to never. It does not come.
type fakeAlarm struct {
	after  time.Duration
	sets   int
	closed chan struct{}
}

func (a *fakeAlarm) Set(after time.Duration) {
	a.after = after
	a.sets++
}

func (a *fakeAlarm) Wait() error {
	<-a.closed
	return os.ErrClosed
}

func (a *fakeAlarm) Close() error {
	close(a.closed)
	return nil
}

func newFake(t *testing.T, change ...func(*Options)) *fake {
	f := &fake{t: t, root: t.TempDir(), published: newRecorder()}
	f.clock.Store(1e9)
	f.alarm.closed = make(chan struct{})
	f.worker.alarm = func(time.Duration) {}
	opts := Options{FS: procfs.FS{Root: f.root}, Publisher: f.published, Now: f.clock.Load, Alarm: &f.alarm}
	for _, c := range change {
		c(&opts)
	}
	f.Table = NewTable(opts)
	return f
}

// image writes the /proc files of a process image.
func (f *fake) image(pid int, startTicks uint64, exe string) {
	f.t.Helper()
	dir := filepath.Join(f.root, strconv.Itoa(pid))
	require.NoError(f.t, os.RemoveAll(dir))
	require.NoError(f.t, os.MkdirAll(dir, 0o755))
	comm := filepath.Base(exe)
	for name, text := range map[string]string{
		"stat":    fmt.Sprintf("%d (%s) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 4096 1 0 0 0 %d\n", pid, comm, startTicks, f.startStack),
		"status":  "Uid:\t1000\t1000\t1000\t1000\nNSpid:\t" + strconv.Itoa(pid) + "\n",
		"cgroup":  "0::/\n",
		"maps":    fmt.Sprintf("%x-%x r-xp 00000000 00:00 0 [%s]\n", 0x10000, 0x20000, comm),
		"cmdline": exe + "\x00",
	} {
		require.NoError(f.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.NoError(f.t, os.Symlink(exe, filepath.Join(dir, "exe")))
}

func (f *fake) remove(pid int) {
	require.NoError(f.t, os.RemoveAll(filepath.Join(f.root, strconv.Itoa(pid))))
}

func (f *fake) advance(ns int64) { f.clock.Add(ns) }

// work does what is due now, and returns how many jobs that were.
func (f *fake) work() (n int) {
	for {
		p, w := f.next()
		if p == nil {
			return n
		}
		if f.begin(&f.worker, p, w) {
			f.run(p, w, &f.scratch)
			f.done(p)
			n++
		}
	}
}

// takeBack has what was published of processes that have ended taken back.
func (f *fake) takeBack() (n int) {
	f.advance(int64(forgetEvery))
	return f.work()
}

// done gives a process back that was taken from the queue.
func (f *fake) done(p *Process) { f.Table.done(&f.worker, p) }

// process returns a known process without marking it as sampled.
func (f *fake) process(id record.ProcessID) *Process {
	f.t.Helper()
	f.mu.RLock()
	defer f.mu.RUnlock()
	require.Contains(f.t, f.byID, id)
	return f.byID[id]
}

const ms = int64(1e6)

// image1 and image2 are images of one process; reused has its PID later.
var (
	image1 = record.ProcessID{TGID: 42, StartNs: 5_000_000_001, ExecID: 1}
	image2 = record.ProcessID{TGID: 42, StartNs: 5_000_000_001, ExecID: 2}
	reused = record.ProcessID{TGID: 42, StartNs: 7_000_000_001, ExecID: 1}
)

// write replaces a /proc file of a process.
func (f *fake) write(pid int, name, text string) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.root, strconv.Itoa(pid), name), []byte(text), 0o644))
}
