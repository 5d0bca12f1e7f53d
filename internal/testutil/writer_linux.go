// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// A slow emulated machine needs seconds to start a program.
	readyTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
)

// Variable is where a thread of a writer has its label variable.
type Variable struct {
	TID  int
	Addr uint64
}

// Writer is a running program of testdata/writers.
type Writer struct {
	PID       int
	Variables []Variable // with --print-variables

	t      testing.TB
	cmd    *exec.Cmd
	stderr bytes.Buffer
	waited sync.Once
	err    error
	done   chan struct{}
}

// Start runs a writer, for example "writer-v1-lib", and returns when all its
// threads have published. It is killed at the end of the test if it still runs.
//
// Writers die with the thread that started them; a test that locks its goroutine to
// a thread and lets both end takes its writers along.
func Start(t testing.TB, variant string, args ...string) *Writer {
	t.Helper()
	return StartPath(t, filepath.Join(BuildWriters(t), variant), args...)
}

// StartPath is Start for a writer at another place, for example a changed copy.
func StartPath(t testing.TB, path string, args ...string) *Writer {
	t.Helper()
	w := &Writer{t: t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	w.cmd.Stderr = &w.stderr
	r, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.cmd.Stdout = stdout
	err = w.cmd.Start()
	stdout.Close()
	if err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	t.Cleanup(w.Kill)
	if err := w.awaitReady(r); err != nil {
		w.Kill()
		t.Fatalf("start %s %s: %v\n%s", path, strings.Join(args, " "), err, w.stderr.String())
	}
	return w
}

// awaitReady reads what the writer says up to the line "ready PID".
func (w *Writer) awaitReady(r *os.File) error {
	if err := r.SetReadDeadline(time.Now().Add(readyTimeout)); err != nil {
		return err
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		var v Variable
		if _, err := fmt.Sscanf(line, "variable %d %v", &v.TID, &v.Addr); err == nil {
			w.Variables = append(w.Variables, v)
			continue
		}
		if _, err := fmt.Sscanf(line, "ready %d", &w.PID); err != nil {
			return fmt.Errorf("unexpected line %q", line)
		}
		return nil
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("ended before it was ready")
}

// Stop asks the writer to end and waits until it has; a truth file or switch log is
// complete afterwards. It fails the test when the writer fails.
func (w *Writer) Stop() {
	w.t.Helper()
	_ = w.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	w.Wait(Size(stopTimeout, stopTimeout, 5*stopTimeout))
}

// Wait waits until the writer has ended by itself; it fails the test when that
// takes longer than the timeout or the writer fails.
func (w *Writer) Wait(timeout time.Duration) {
	w.t.Helper()
	go w.wait()
	select {
	case <-w.done:
	case <-time.After(timeout):
		w.Kill()
		w.t.Fatalf("%s did not end within %v", w.cmd.Path, timeout)
	}
	if w.err != nil {
		w.t.Fatalf("%s: %v\n%s", w.cmd.Path, w.err, w.stderr.String())
	}
}

// Signal sends a signal, SIGSTOP for example, to the writer.
func (w *Writer) Signal(signal syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(signal); err != nil {
		w.t.Fatal(err)
	}
}

func (w *Writer) wait() {
	w.waited.Do(func() {
		w.err = w.cmd.Wait()
		close(w.done)
	})
}

// Kill ends the writer, however it would end by itself.
func (w *Writer) Kill() {
	_ = w.cmd.Process.Kill()
	w.wait()
	<-w.done
}
