// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"io"
	"os"
)

// Clear is what empties a terminal, with what it has scrolled away.
const Clear = "\x1b[H\x1b[2J\x1b[3J"

// unknownRows is the height of a terminal that does not say.
const unknownRows = 24

// Rows is the height of a terminal; 0: the output is none.
func Rows(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	return rowsOf(file)
}

// FirstLines returns the first n lines, at least one. It is a part of the text itself.
func FirstLines(text []byte, n int) []byte {
	end := 0
	for i := 0; i < max(n, 1); i++ {
		next := bytes.IndexByte(text[end:], '\n')
		if next < 0 {
			return text
		}
		end += next + 1
	}
	return text[:end]
}
