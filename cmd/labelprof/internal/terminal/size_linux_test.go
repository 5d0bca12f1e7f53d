// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pty returns the program's end of a terminal with this size.
func pty(t *testing.T, rows, columns uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}))
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

func TestScreenOfTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("COLUMNS", "")
	require.Equal(t, Screen{33, 57}, Of(pty(t, 33, 57)))
	require.Equal(t, Screen{24, 80}, Of(pty(t, 0, 0)), "one that does not say")
	for set, want := range map[string]int{"44": 44, "-1": 57, "wide": 57} {
		t.Setenv("COLUMNS", set)
		require.Equal(t, want, Of(pty(t, 33, 57)).Columns, set)
	}
	t.Setenv("TERM", "dumb")
	s := Of(pty(t, 33, 57))
	require.False(t, s.Redraws())
	require.NotZero(t, s.Columns)
}
