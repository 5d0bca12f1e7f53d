// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"slices"
	"strings"
)

const (
	// leastColumns is what a column keeps when there is little room.
	leastColumns = 8
	// mostPadding is the widest that a cell makes a column where there is no bound: a longer one
	// moves only what is on its own row.
	mostPadding = 48
)

// Grid is text in columns, the first few aligned to the left, the others to the
// right.
type Grid struct {
	Left int // columns that are aligned to the left
	// Columns is the width of all, for which cells aligned to the left are cut, and the last of the
	// others left out; 0: no bound.
	Columns int
	rows    [][]string
}

// Add adds a row. Its cells are printed as they are: see [Escape].
func (g *Grid) Add(cells ...string) {
	g.rows = append(g.rows, cells)
}

// Render prints the rows. What the writer says is ignored: who must know if all is written
// renders into a buffer.
func (g *Grid) Render(w io.Writer) {
	widths := g.widths()
	for _, row := range g.rows {
		var b strings.Builder
		for i, cell := range row[:min(len(row), len(widths))] {
			if g.Columns > 0 && i < g.Left {
				cell = Shorten(cell, widths[i])
			}
			padding := strings.Repeat(" ", max(widths[i]-Width(cell), 0))
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

// widths returns the width of each column.
func (g *Grid) widths() []int {
	var widths []int
	for _, row := range g.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := Width(cell); g.Columns > 0 || n <= mostPadding {
				widths[i] = max(widths[i], n)
			}
		}
	}
	if g.Columns > 0 {
		return g.narrow(widths)
	}
	return widths
}

// narrow takes room from the widest of the columns that are aligned to the left, as long as the
// rows are too wide. Numbers are not cut, which would make others of them: where there is still no
// room, the last columns are left out, down to the first number.
func (g *Grid) narrow(widths []int) []int {
	over := -g.Columns
	for _, n := range widths {
		over += n + 2
	}
	left := widths[:min(g.Left, len(widths))]
	for ; over > 0 && len(left) > 0; over-- {
		widest := slices.Index(left, slices.Max(left))
		if left[widest] <= leastColumns {
			break
		}
		left[widest]--
	}
	for over > 0 && len(widths) > g.Left+1 {
		over -= widths[len(widths)-1] + 2
		widths = widths[:len(widths)-1]
	}
	return widths
}
