// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// grid is text in columns, the first few aligned to the left, the others to the
// right.
type grid struct {
	left int
	rows [][]string
}

func (g *grid) add(cells ...string) {
	g.rows = append(g.rows, cells)
}

func (g *grid) render(w io.Writer) {
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
			if i < g.left {
				b.WriteString(cell + padding)
			} else {
				b.WriteString(padding + cell)
			}
		}
		_, _ = io.WriteString(w, strings.TrimRight(b.String(), " ")+"\n")
	}
}
