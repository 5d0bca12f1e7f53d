// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// terminalOf returns the program's end of a terminal whose other end is written to a log.
func terminalOf(t *testing.T, shown io.Writer) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	go func() { _, _ = io.Copy(shown, master) }()
	return file
}

// TestTerminalKeepsTheAddresses: they stand above the tables each time and at the end, and what
// the terminal has scrolled away stays the user's.
func TestTerminalKeepsTheAddresses(t *testing.T) {
	t.Setenv("TERM", "xterm")
	var shown log
	stdout := terminalOf(t, &shown)
	s := newServed()
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(t.Context())
	defer s.cancel()
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--web", "127.0.0.1:0"}
		s.code <- command.ExitCode("serve", Run(ctx, args, stdout, &s.stderr), &s.stderr)
	}()
	receives, page := s.address(t), s.page(t)
	export(t, receives)
	screens := func() []string { return strings.Split(shown.String(), terminal.Clear)[1:] }
	require.Eventually(t, func() bool { return len(screens()) > 2 }, time.Minute, 10*time.Millisecond)
	s.cancel()
	require.Zero(t, s.wait(t), s.stderr.String())
	_, err := stdout.WriteString("the end")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return strings.HasSuffix(shown.String(), "the end") }, time.Minute, 10*time.Millisecond)
	require.Contains(t, shown.String(), "in 100 samples")
	for i, screen := range screens() {
		require.Contains(t, screen, "OTLP profiles at "+receives, i)
		require.Contains(t, screen, "http://"+page+"/", i)
		require.Contains(t, screen, "CPU by", i)
	}
	require.NotContains(t, shown.String(), "\x1b[3J")
}

// TestServeUnreadFiles: when the command ends, what it has read is shown, and that it is not all
// is said.
func TestServeUnreadFiles(t *testing.T) {
	stdout, stderr := unread(t, 0)
	require.Contains(t, stdout, "in 100 samples")
	require.Equal(t, unreadNote+"interrupt signal received\n", stderr)
	stdout = ""
	for duration := 2 * time.Second; !strings.Contains(stdout, "in 100 samples"); duration *= 4 { // until there is time for the first file
		require.Less(t, duration, time.Minute)
		stdout, stderr = unread(t, duration+time.Second, "--duration", duration.String())
	}
	require.Equal(t, unreadNote+"--duration is over\n", stderr)
}

const unreadNote = "labelprof serve: the files were not read to their end: "

// unread returns what the command prints of a file and one that says nothing, of which an
// interrupt signal ends the reading after so long.
func unread(t *testing.T, open time.Duration, args ...string) (shown, told string) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	written, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // when the file before is read
		if err != nil {
			return
		}
		time.Sleep(open)
		cancel(errors.New("interrupt signal received"))
		<-ended
		writer.Close()
	}()
	var stdout, stderr log
	err := Run(ctx, append(args, "--web", "", single(t), fifo), &stdout, &stderr)
	close(ended)
	require.Equal(t, command.ExitError, command.ExitCode("serve", err, &stderr))
	reader, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0) // if it was never opened
	require.NoError(t, err)
	<-written
	require.NoError(t, reader.Close())
	return stdout.String(), stderr.String()
}
