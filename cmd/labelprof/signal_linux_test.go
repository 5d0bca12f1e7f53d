// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asCommand is the name by which the test program is the command.
const asCommand = "labelprof"

func TestMain(m *testing.M) {
	if os.Args[0] == asCommand {
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

// TestSecondSignal: what a first signal does not end, since it waits for a writer of a pipe, a
// second one does. One that follows at once is the first one again, as timeout(1) sends it.
func TestSecondSignal(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "top", fifo)
	cmd.Args[0] = asCommand
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()

	// That is what it does once it catches the others.
	require.Eventually(t, func() bool { return ignores(t, cmd.Process.Pid, syscall.SIGPIPE) }, 20*time.Second, time.Millisecond)
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
			require.Less(t, time.Since(began), 10*time.Second, "it does not end")
		}
	}
}
