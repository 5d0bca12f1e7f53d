// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"strings"
	"unicode/utf8"
)

// Grid is text in columns, the first few aligned to the left, the others to the
// right.
type Grid struct {
	Left int // columns that are aligned to the left

	rows [][]string
}

// Add adds a row. Its cells are printed as they are: see [Escape].
func (g *Grid) Add(cells ...string) {
	g.rows = append(g.rows, cells)
}

// Render prints the rows. What the writer says is ignored: a reader that went away is no
// reason to fail.
func (g *Grid) Render(w io.Writer) {
	var widths []int
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range g.rows {
		var b strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			b.WriteString("  ")
			if i < g.Left {
				b.WriteString(cell + padding)
			} else {
				b.WriteString(padding + cell)
			}
		}
		_, _ = io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n")
	}
}
