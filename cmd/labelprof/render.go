// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	valueColumns    = 32
	functionColumns = 44
	fileColumns     = 20 // 80 in all with the others
	absent          = "(none)"
	others          = "(others)"
)

// view is what render needs besides the table.
type view struct {
	rows, functions int
	truths          []truth
	notes           []string // what went wrong, one line each
}

// render prints the table of CPU time by label, then the hottest functions. Where there
// are off-CPU profiles, it has time off the CPU, too.
func render(w io.Writer, t *table, v view) {
	fmt.Fprintf(w, "CPU by %s: %s in %d samples of %d processes",
		escape(strings.Join(t.by, ", ")), seconds(t.cpuNs), t.hits, len(t.processes))
	if t.tracedNs > 0 {
		fmt.Fprintf(w, ", %s with a trace", percent(t.tracedNs, t.cpuNs))
	}
	if t.absences > 0 {
		fmt.Fprintf(w, "; %s off it, in %d absences", seconds(t.offCPUNs), t.absences)
	}
	fmt.Fprint(w, "\n\n")
	rows := t.sorted()
	c := t.compare(v.truths)
	renderRows(w, t, rows, c, v)
	if c.told > 0 {
		renderComparison(w, c)
	}
	shown := rows[:min(len(rows), v.rows)]
	renderFunctions(w, "hottest functions, by self time", shown, v.functions,
		func(r *row) (map[functionKey]int64, int64) { return r.functions, r.cpuNs })
	if t.absences > 0 {
		renderFunctions(w, "functions that leave the CPU, by the time until they have it back", shown, v.functions,
			func(r *row) (map[functionKey]int64, int64) { return r.waits, r.offCPUNs })
	}
	for _, note := range v.notes {
		fmt.Fprintf(w, "! %s\n", escape(note))
	}
}

func renderRows(w io.Writer, t *table, rows []*row, c comparison, v view) {
	g := &grid{left: len(t.by)}
	var head []string
	for _, key := range t.by {
		head = append(head, shorten(escape(key), valueColumns))
	}
	head = append(head, "CPU", "share", "samples")
	if t.absences > 0 {
		head = append(head, "off CPU")
	}
	if c.told > 0 {
		head = append(head, "measured", "true", "difference")
	}
	g.add(head...)

	missing := c.missing(t)
	shown := min(len(rows), v.rows)
	for _, r := range rows[:shown] {
		g.add(cells(t, r, c)...)
	}
	for _, values := range missing[:min(len(missing), max(v.rows-shown, 0))] {
		g.add(cells(t, &row{values: values}, c)...)
	}
	if rest := restOf(rows[shown:], t.others); rest.hits > 0 || rest.offCPUNs > 0 {
		g.add(cells(t, &rest, c)...)
	}
	g.render(w)
	fmt.Fprintln(w)
}

func cells(t *table, r *row, c comparison) []string {
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

// columns are the shares among the processes that tell their truth, and how many
// points they are apart.
func (c comparison) columns(r *row) []string {
	key := encodeValues(r.values)
	_, sampled := c.sampledRows[key]
	_, told := c.trueRows[key]
	if r.values == nil || !sampled && !told || c.sampledNs == 0 || c.trueNs == 0 {
		return nil
	}
	measured := 100 * float64(c.sampledRows[key]) / float64(c.sampledNs)
	truth := 100 * float64(c.trueRows[key]) / float64(c.trueNs)
	return []string{fmt.Sprintf("%.1f %%", measured), fmt.Sprintf("%.1f %%", truth), fmt.Sprintf("%+.1f", measured-truth)}
}

// missing are the label values that have a truth and no sample.
func (c comparison) missing(t *table) [][]value {
	var missing [][]value
	for key, values := range c.trueValues {
		if _, ok := t.rows[key]; !ok {
			missing = append(missing, values)
		}
	}
	slices.SortFunc(missing, func(a, b []value) int { return slices.CompareFunc(a, b, compareValues) })
	return missing
}

// restOf sums up rows that are not shown.
func restOf(hidden []*row, overflow row) row {
	rest := row{hits: overflow.hits, cpuNs: overflow.cpuNs, offCPUNs: overflow.offCPUNs}
	for _, r := range hidden {
		rest.hits += r.hits
		rest.cpuNs += r.cpuNs
		rest.offCPUNs = plus(rest.offCPUNs, r.offCPUNs)
	}
	return rest
}

func renderComparison(w io.Writer, c comparison) {
	fmt.Fprintf(w, "measured: shares of the labelled CPU of %d processes (%s of theirs is unlabelled);\n",
		c.processes, percent(c.unlabelled, c.unlabelled+c.sampledNs))
	fmt.Fprint(w, "true: what these processes measured themselves")
	if others := c.told - c.processes; others > 0 {
		fmt.Fprintf(w, "; %d more did, and have no such labels", others)
	}
	fmt.Fprint(w, "\n\n")
}

func renderFunctions(w io.Writer, title string, rows []*row, count int, of func(*row) (times map[functionKey]int64, all int64)) {
	if count <= 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, r := range rows {
		times, all := of(r)
		if len(times) == 0 {
			continue
		}
		names := make([]string, len(r.values))
		for i, v := range r.values {
			names[i] = showValue(v)
		}
		fmt.Fprintf(w, "\n  %s\n", strings.Join(names, ", "))
		functions := hottest(times)
		for _, f := range functions[:min(len(functions), count)] {
			fmt.Fprintf(w, "  %8s  %-*s  %s\n", percent(f.ns, all), functionColumns,
				shorten(escape(f.name), functionColumns), showFiles(f))
		}
	}
	fmt.Fprintln(w)
}

// showFiles names the executable of a function, or one of several.
func showFiles(f functionTime) string {
	name := escape(path.Base("/" + f.file))
	if f.files == 1 {
		return shorten(name, fileColumns)
	}
	more := fmt.Sprintf(" +%d", f.files-1)
	return shorten(name, fileColumns-len(more)) + more
}

// showValue keeps a value apart from what the table itself says.
func showValue(v value) string {
	if !v.present {
		return absent
	}
	if v.text == "" || strings.HasPrefix(v.text, "(") || strings.HasPrefix(v.text, `"`) {
		return shorten(`"`+escape(v.text)+`"`, valueColumns)
	}
	return shorten(escape(v.text), valueColumns)
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
