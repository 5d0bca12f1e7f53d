//go:build linux

package process

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup/wakeuptest"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// recorder is a Publisher that remembers.
type recorder struct {
	mu       sync.Mutex
	sources  map[record.ProcessID][]record.LabelSource
	calls    int
	filtered map[record.ProcessID]bool
	forgot   []record.ProcessID
	running  []record.ProcessID // of forgot, those that ForgetRunning was called for
	err      error
}

func newRecorder() *recorder {
	return &recorder{sources: map[record.ProcessID][]record.LabelSource{}, filtered: map[record.ProcessID]bool{}}
}

func (r *recorder) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.err == nil {
		r.sources[id] = sources
		delete(r.filtered, id)
	}
	return r.err
}

func (r *recorder) Filter(id record.ProcessID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.err == nil {
		r.filtered[id] = true
		delete(r.sources, id)
	}
	return r.err
}

// filters reports whether a process was published as not wanted.
func (r *recorder) filters(id record.ProcessID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.filtered[id]
}

func (r *recorder) ForgetRunning(id record.ProcessID) error {
	r.mu.Lock()
	r.running = append(r.running, id)
	r.mu.Unlock()
	return r.Forget(id)
}

func (r *recorder) Forget(id record.ProcessID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgot = append(r.forgot, id)
	delete(r.sources, id)
	delete(r.filtered, id)
	return nil
}

// of returns the sources of a process, and whether it is known.
func (r *recorder) of(id record.ProcessID) ([]record.LabelSource, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sources[id]
	return s, ok
}

func (r *recorder) forgotten(id record.ProcessID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.forgot, id)
}

// runTable runs a table until the end of the test.
func runTable(t *testing.T, opts Options) *Table {
	t.Helper()
	opts.Alarm = wakeuptest.Alarm(t)
	table := NewTable(opts)
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { table.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
		require.Zero(t, table.Stats().Descriptors)
	})
	return table
}

// quiet has no periodic pass that would help out.
const quiet = time.Hour

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, time.Minute, time.Millisecond, what)
}

// program is a running test program.
type program struct{ *target.Program }

// start runs a program until the end of the test.
func start(t *testing.T, path string, args ...string) *program {
	t.Helper()
	return &program{target.Start(t, path, args...)}
}

// running is one that something else has started.
func running(pid int) *program { return &program{&target.Program{PID: pid}} }

func compile(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	return target.Compile(t, name, source, flags...)
}

func (p *program) id() record.ProcessID {
	st, _ := procfs.FS{}.Stat(p.PID) // without it, it is nobody's
	return record.ProcessID{TGID: uint32(p.PID), StartNs: st.StartTicks*1e7 + 12345, ExecID: 1}
}

func (p *program) exists() record.Event {
	return record.Event{Kind: record.EventExists, Process: p.id(), PID: p.PID, TimeNs: uint64(budget.Clock(unix.CLOCK_MONOTONIC))}
}

// loaded enters a process and waits for its information.
func loaded(t *testing.T, table *Table, ev record.Event) *Process {
	t.Helper()
	table.HandleEvent(ev)
	p := table.Lookup(ev.Process, ev.PID, nobody, []byte("comm"))
	eventually(t, "process loaded", func() bool { return p.Info().Loaded })
	return p
}
