//go:build linux

package process

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a Publisher that remembers.
type recorder struct {
	mu       sync.Mutex
	sources  map[record.ProcessID][]record.LabelSource
	calls    int
	filtered map[record.ProcessID]bool
	forgot   []record.ProcessID
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
type program struct {
	t     *testing.T
	path  string
	pid   int
	cmd   *exec.Cmd
	lines *bufio.Reader
	in    *os.File
}

// compile builds a C program or, with -shared, a library.
func compile(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(out+".c", []byte(source), 0o644))
	testutil.Compile(t, out, "gcc", append([]string{"-O1", "-Wall", out + ".c"}, flags...)...)
	return out
}

// start runs a program until the end of the test.
func start(t *testing.T, path string, args ...string) *program {
	t.Helper()
	cmd := exec.Command(path, args...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdin, cmd.Stderr = r, os.Stderr
	require.NoError(t, cmd.Start())
	r.Close()
	p := &program{t: t, path: path, pid: cmd.Process.Pid, cmd: cmd, lines: bufio.NewReader(stdout), in: w}
	t.Cleanup(p.stop)
	return p
}

func (p *program) stop() {
	p.in.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// line reads a line of output into values.
func (p *program) line(values ...any) {
	p.t.Helper()
	s, err := p.lines.ReadString('\n')
	require.NoError(p.t, err)
	_, err = fmt.Sscan(s, values...)
	require.NoError(p.t, err, "%q", s)
}

// tell lets the program go on.
func (p *program) tell() {
	p.t.Helper()
	_, err := p.in.WriteString("x")
	require.NoError(p.t, err)
}

func (p *program) id() record.ProcessID {
	p.t.Helper()
	st, err := procfs.FS{}.Stat(p.pid)
	require.NoError(p.t, err)
	return record.ProcessID{TGID: uint32(p.pid), StartNs: st.StartTicks*1e7 + 12345, ExecID: 1}
}

func (p *program) exists() record.Event {
	return record.Event{Kind: record.EventExists, Process: p.id(), PID: p.pid, TimeNs: uint64(clock(unix.CLOCK_MONOTONIC))}
}

// loaded enters a process and waits for its information.
func loaded(t *testing.T, table *Table, ev record.Event) *Process {
	t.Helper()
	table.HandleEvent(ev)
	p := table.Lookup(ev.Process, ev.PID, []byte("comm"))
	eventually(t, "process loaded", func() bool { return p.Info().Loaded })
	return p
}

// common is C that all programs begin with.
const common = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
static inline void *tp(void) { void *p; __asm__("mov %%fs:0, %0" : "=r"(p)); return p; }
#else
static inline void *tp(void) { return __builtin_thread_pointer(); }
#endif
static void await(void) { char c; if (read(0, &c, 1) != 1) exit(0); }
static void say(const void *variable) { printf("%lu %lu\n", (unsigned long)tp(), (unsigned long)variable); fflush(stdout); }
`

const (
	defineV0  = "struct v0 { void *storage; uint64_t count; };\n__attribute__((visibility(\"default\"))) __thread struct v0 custom_labels_thread_local_data;\n__attribute__((visibility(\"default\"))) const int custom_labels_abi_version = 0;\n"
	defineV1  = "__attribute__((visibility(\"default\"))) __thread void *custom_labels_current_set;\n__attribute__((visibility(\"default\"))) int custom_labels_abi_version = 1;\n"
	defineCtx = "__attribute__((visibility(\"default\"))) __thread void *otel_thread_ctx_v1;\n"
)

// libraryOf makes a library that tells where its thread-local variable is.
func libraryOf(t *testing.T, define, variable string, flags ...string) string {
	source := "#include <stdint.h>\n" + define + "void *where(void) { return &" + variable + "; }\n"
	return compile(t, "libtest"+strings.ToLower(variable)+".so", source, append([]string{"-shared", "-fPIC"}, flags...)...)
}
