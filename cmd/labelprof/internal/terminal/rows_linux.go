// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// rowsOf is the height of the terminal that a file is; 0: it is none.
func rowsOf(file *os.File) int {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	if size.Row == 0 {
		return unknownRows
	}
	return int(size.Row)
}
