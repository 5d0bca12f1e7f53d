// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// Clear is what empties the screen of a terminal. What it has scrolled away is the user's.
const Clear = "\x1b[H\x1b[2J"

// The size of a terminal that does not say.
const (
	unknownRows    = 24
	unknownColumns = 80
)

// Screen is the size of a terminal; zero: the output is none.
type Screen struct{ Rows, Columns int }

// Of returns the size of the terminal that w is. The environment's COLUMNS is its width, if it is
// set to a number. One that cannot move its cursor (TERM=dumb) has no rows.
func Of(w io.Writer) Screen {
	file, ok := w.(*os.File)
	if !ok {
		return Screen{}
	}
	s := sizeOf(file)
	if s == (Screen{}) {
		return s
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		s.Columns = n
	}
	if os.Getenv("TERM") == "dumb" {
		s.Rows = 0
	}
	return s
}

// Redraws says whether what is shown can take the place of what was there.
func (s Screen) Redraws() bool { return s.Rows > 0 }

// Fit returns as many of the first lines, at least one, as leave a row for the cursor, each cut
// to the width: a line that is wrapped would push others out.
func (s Screen) Fit(text []byte) []byte {
	var out []byte
	for i := 0; i < max(s.Rows-1, 1) && len(text) > 0; i++ {
		line, rest, more := bytes.Cut(text, []byte("\n"))
		if s.Columns > 0 {
			line = []byte(Shorten(string(line), s.Columns))
		}
		out = append(out, line...)
		if more {
			out = append(out, '\n')
		}
		text = rest
	}
	return out
}
