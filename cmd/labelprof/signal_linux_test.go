// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

// asCommand is the name by which the test program is the command, and envAsCommand the variable
// where it cannot have a name.
const (
	asCommand    = "labelprof"
	envAsCommand = "LABELPROF_TEST_AS_COMMAND"
)

func TestMain(m *testing.M) {
	if os.Args[0] == asCommand || os.Getenv(envAsCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// ignores reports whether a process ignores a signal.
func ignores(t *testing.T, pid int, signal syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(status), "\nSigIgn:\t")
	ignored, _, _ = strings.Cut(ignored, "\n")
	mask, err := strconv.ParseUint(ignored, 16, 64)
	require.NoError(t, err)
	return mask&(1<<(signal-1)) != 0
}

// started is the command, once it runs.
func started(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// opens waits until a process waits for something that it opens.
func opens(t *testing.T, pid int) {
	t.Helper()
	before := ""
	require.Eventually(t, func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
		require.NoError(t, err)
		for _, task := range tasks {
			if call, err := os.ReadFile(task); err == nil && strings.HasPrefix(string(call), fmt.Sprint(unix.SYS_OPENAT, " ")) {
				same := string(call) == before
				before = string(call)
				return same
			}
		}
		before = ""
		return false
	}, time.Minute, 20*time.Millisecond)
}

// heedHangup has commands that are started from now on not ignore SIGHUP, whatever started the test does.
func heedHangup(t *testing.T) {
	t.Helper()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP) // what is caught is back at its default after an exec
	t.Cleanup(func() { signal.Stop(signals) })
}

// TestHangup: a terminal that goes ends the command as a signal does, with all files written; but
// not under nohup.
func TestHangup(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.Tenants().Profiles).MarshalProto()
	require.NoError(t, err)
	file, out := filepath.Join(dir, "file"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	heedHangup(t)
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	cmd := exec.CommandContext(ctx, self, "serve", "--web", "", "--interval", "1ms", "--pprof", out, file)
	cmd.Args[0] = asCommand
	tables, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started(t, cmd)
	_, err = tables.Read(make([]byte, 1)) // the file is read
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	_, err = io.Copy(io.Discard, tables)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.FileExists(t, out)

	cmd = exec.Command("sh", "-c", `trap "" HUP; exec "$0" "$@"`, self)
	cmd.Args = append(cmd.Args, "serve", "--web", "", "--interval", "1ms", file)
	cmd.Env = append(os.Environ(), envAsCommand+"=1")
	tables, err = cmd.StdoutPipe()
	require.NoError(t, err)
	started(t, cmd)
	_, err = tables.Read(make([]byte, 1))
	require.NoError(t, err)
	require.True(t, ignores(t, cmd.Process.Pid, syscall.SIGHUP))
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// startedCheck starts check with a command that waits, of which it returns the PID.
func startedCheck(t *testing.T) (cmd *exec.Cmd, said io.Reader, pid int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.Command(self, "check", "--seconds", "60", "--", "sh", "-c", "echo $$; exec sleep 20")
	cmd.Args[0] = asCommand
	said, err = cmd.StderrPipe()
	require.NoError(t, err)
	started(t, cmd)
	_, err = fmt.Fscan(said, &pid)
	require.NoError(t, err)
	return cmd, said, pid
}

// TestHangupOfCheck: the command that check runs does not outlive it.
func TestHangupOfCheck(t *testing.T) {
	heedHangup(t)
	cmd, said, pid := startedCheck(t)
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	_, _ = io.Copy(io.Discard, said)
	require.Error(t, cmd.Wait())
	require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
}

// TestBrokenPipeOfCommand: the command that check runs heeds SIGPIPE, as it does elsewhere; the command that
// writes into a pipe that was left does not.
func TestBrokenPipeOfCommand(t *testing.T) {
	cmd, said, pid := startedCheck(t)
	require.False(t, ignores(t, pid, syscall.SIGPIPE))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_, _ = io.Copy(io.Discard, said)
	require.Error(t, cmd.Wait())

	cmd = exec.Command(cmd.Path, "help")
	cmd.Args[0] = asCommand
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	cmd.Stdout = write
	require.NoError(t, cmd.Run(), "SIGPIPE does not end it")
	require.NoError(t, write.Close())
}

// TestSecondSignal: what a first signal does not end, since it waits for a writer of a pipe, a
// second one does. One that follows at once is the first one again, as timeout(1) sends it.
func TestSecondSignal(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "top", fifo)
	cmd.Args[0] = asCommand
	started(t, cmd)
	opens(t, cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	began := time.Now()
	for {
		if err := cmd.Process.Signal(syscall.SIGINT); !errors.Is(err, os.ErrProcessDone) {
			require.NoError(t, err)
		}
		select {
		case err := <-ended:
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			status := exit.Sys().(syscall.WaitStatus)
			require.True(t, status.Signaled(), "%v", err)
			require.Equal(t, syscall.SIGINT, status.Signal())
			require.GreaterOrEqual(t, time.Since(began), signalGrace)
			return
		case <-time.After(50 * time.Millisecond):
			require.Less(t, time.Since(began), time.Minute, "it does not end")
		}
	}
}
