// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// maxSelection bounds the time in which the process that publishes is looked for among those
	// of a command, and lookEvery is how often.
	maxSelection = 2 * time.Second
	lookEvery    = 100 * time.Millisecond
	// maxOthers bounds the processes that are looked at besides, and maxListed those of the host.
	maxOthers = 32
	maxListed = 1 << 17
	// endEvery is how often the end of a command is looked for.
	endEvery = 20 * time.Millisecond
	// ending is how long a command may take to end when it is asked to.
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
	cmd.WaitDelay = ending
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

// end ends the command and what is left of its process group.
func (p *program) end() {
	group := -p.cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(ending):
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
	<-p.done
	_ = p.cmd.Wait() // how it has ended is its own business
}

// publisher returns the process of the command that publishes: the command itself, or one of its
// group, when that has published something within the time.
func (p *program) publisher(ctx context.Context, within time.Duration) int {
	root := p.cmd.Process.Pid
	end := time.Now().Add(within)
	written := root // the last one that is a Go program
	for ctx.Err() == nil && time.Now().Before(end) {
		for _, pid := range append([]int{root}, others(root)...) {
			info, err := process.Inspect(ctx, procfs.FS{}, pid)
			if err != nil {
				continue
			}
			if info.Context != nil || info.ContextErr != "" {
				return pid
			}
			for i := range info.Sources {
				if info.Sources[i].ABI != record.ABIGo {
					return pid
				}
				written = pid
			}
		}
		select {
		case <-p.done:
			return root
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
	return written
}

// others returns some processes of a process group but its leader.
func others(leader int) (found []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxListed)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == leader || len(found) == maxOthers {
			continue
		}
		if group, err := syscall.Getpgid(pid); err == nil && group == leader {
			found = append(found, pid)
		}
	}
	return found
}
