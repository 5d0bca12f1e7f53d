// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// sizeOf is the size of the terminal that a file is; zero: it is none.
func sizeOf(file *os.File) Screen {
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return Screen{}
	}
	s := Screen{int(size.Row), int(size.Col)}
	if s.Rows == 0 {
		s.Rows = unknownRows
	}
	if s.Columns == 0 {
		s.Columns = unknownColumns
	}
	return s
}
