// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

const (
	absent = "(none)"
	others = "(others)"
)

// View is what of a table is shown, and what besides.
type View struct {
	Rows      int // label values
	Functions int // of each label value
	Columns   int // of the terminal, for which names are cut; 0: names are whole
	Truths    []Truth
	Notes     []string // what went wrong, one line each; escaped when they are shown
}

// ofProcesses says of how many processes the samples are; nothing where that is not known.
func (t *Table) ofProcesses() string {
	switch n := len(t.processes); {
	case t.moreProcesses:
		return fmt.Sprintf(" of at least %d processes", n)
	case n == 0 && !t.Empty():
		return ""
	case n == 1:
		return " of 1 process"
	default:
		return fmt.Sprintf(" of %d processes", n)
	}
}

// Render prints the table of CPU time by label, then the hottest functions. Where there
// are off-CPU profiles, it has time off the CPU, too. What the writer says is ignored, as by
// Grid.Render.
func (t *Table) Render(w io.Writer, v View) {
	fmt.Fprintf(w, "CPU by %s: %s in %d samples%s",
		terminal.Escape(strings.Join(t.by, ", ")), seconds(t.cpuNs), t.hits, t.ofProcesses())
	if t.tracedNs > 0 {
		fmt.Fprintf(w, ", %s with a trace", percent(t.tracedNs, t.cpuNs))
	}
	if t.absences > 0 {
		fmt.Fprintf(w, "; %s off it, in %d absences", seconds(t.offCPUNs), t.absences)
	}
	fmt.Fprint(w, "\n\n")
	rows := t.sorted()
	c := t.compare(v.Truths)
	renderRows(w, t, rows, c, v)
	if c.expected > 0 {
		renderComparison(w, c)
	}
	shown := rows[:min(len(rows), v.Rows)]
	renderFunctions(w, "hottest functions, by self time", shown, v,
		func(r *row) (map[functionKey]int64, int64) { return r.functions, r.cpuNs })
	if t.absences > 0 {
		renderFunctions(w, "functions that leave the CPU, by the time until they have it back", shown, v,
			func(r *row) (map[functionKey]int64, int64) { return r.waits, r.offCPUNs })
	}
	for _, note := range v.Notes {
		fmt.Fprintf(w, "! %s\n", terminal.Escape(note))
	}
}

func renderRows(w io.Writer, t *Table, rows []*row, c comparison, v View) {
	g := &terminal.Grid{Left: len(t.by), Columns: v.Columns}
	var head []string
	for _, key := range t.by {
		head = append(head, terminal.Escape(key))
	}
	head = append(head, "CPU", "share", "samples")
	if t.absences > 0 {
		head = append(head, "off CPU")
	}
	if c.expected > 0 {
		head = append(head, "measured", "true", "difference")
	}
	g.Add(head...)

	missing := c.missing(t)
	shown := min(len(rows), v.Rows)
	for _, r := range rows[:shown] {
		g.Add(cells(t, r, c)...)
	}
	for _, values := range missing[:min(len(missing), max(v.Rows-shown, 0))] {
		g.Add(cells(t, &row{values: values}, c)...)
	}
	if rest := restOf(rows[shown:], t.others); rest.hits > 0 || rest.cpuNs > 0 || rest.offCPUNs > 0 {
		g.Add(cells(t, &rest, c)...)
	}
	g.Render(w)
	fmt.Fprintln(w)
}

func cells(t *Table, r *row, c comparison) []string {
	var line []string
	for i := range t.by {
		if r.values == nil {
			line = append(line, others)
		} else {
			line = append(line, showValue(r.values[i]))
		}
	}
	line = append(line, seconds(r.cpuNs), percent(r.cpuNs, t.cpuNs), strconv.FormatInt(r.hits, 10))
	if t.absences > 0 {
		line = append(line, seconds(r.offCPUNs))
	}
	return append(line, c.columns(r)...)
}

// showValue keeps a value apart from what the table itself says.
func showValue(v value) string {
	if !v.present {
		return absent
	}
	if v.text == "" || strings.HasPrefix(v.text, "(") || strings.HasPrefix(v.text, `"`) {
		return `"` + terminal.Escape(v.text) + `"`
	}
	return terminal.Escape(v.text)
}

func seconds(ns int64) string {
	return fmt.Sprintf("%.2f s", float64(ns)/1e9)
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
