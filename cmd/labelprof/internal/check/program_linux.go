// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// endEvery is how often the end of a command is looked for.
	endEvery = 20 * time.Millisecond
	// ending is how long a command may take to end when it is asked to, and when it is killed: a
	// thread that waits uninterruptibly ends no sooner than what it waits for.
	ending = 2 * time.Second
)

// program is a command that runs.
type program struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// start starts a command in a process group of its own, its output to stderr.
func start(args []string, stderr io.Writer) (*program, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = ending / 2
	p := &program{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		defer close(p.done)
		// A command that wants to die with its parent dies with the OS thread that started it,
		// and those that stop threads may end (package labelread).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.awaitEnd()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the command: %w", err)
	}
	return p, nil
}

// awaitEnd waits until the command has ended, as the kernel shows it. wait(2) would report, and
// so take from their tracer, the stops of its threads.
func (p *program) awaitEnd() {
	for {
		stat, err := (procfs.FS{}).Stat(p.cmd.Process.Pid)
		if _, live := (procfs.FS{}).LiveThread(p.cmd.Process.Pid); err != nil || stat.Dead() && live != nil {
			return
		}
		time.Sleep(endEvery)
	}
}

// over reports whether the command has ended by itself.
func (p *program) over() bool {
	select {
	case <-p.done:
		return true
	case <-time.After(2 * endEvery): // for it to be noticed
		return false
	}
}

// end ends the command and what is left of its process group, as far as they let themselves be
// ended in a while. It returns how the command has ended, "" if it has not.
func (p *program) end() string {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	ended(p.done)
	_ = syscall.Kill(group, syscall.SIGKILL)
	if !ended(p.done) {
		return ""
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = p.cmd.Wait() // how it has ended is its own business
	}()
	if !ended(waited) {
		return ""
	}
	return p.cmd.ProcessState.String()
}

// ended waits for an end, for a while.
func ended(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	case <-time.After(ending):
		return false
	}
}
