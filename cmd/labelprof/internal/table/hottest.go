// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// functionKey tells functions apart by what they are called in a file.
type functionKey struct {
	name, file string
	named      bool // name is not just an address
}

// functionTime is a function with its time, in whatever files it is.
type functionTime struct {
	name  string
	file  string // one of them
	files int
	ns    int64
}

// hottest returns functions, the most time first. What several executables call by one
// name is one function; addresses are of their file.
func hottest(times map[functionKey]int64) []functionTime {
	type identity struct{ name, file string }
	merged := map[identity]*functionTime{}
	for key, ns := range times {
		id := identity{name: key.name}
		if !key.named {
			id.file = key.file
		}
		f := merged[id]
		if f == nil {
			f = &functionTime{name: key.name, file: key.file}
			merged[id] = f
		}
		f.file = min(f.file, key.file)
		f.files++
		f.ns = sample.AddNs(f.ns, ns)
	}
	functions := make([]functionTime, 0, len(merged))
	for _, f := range merged {
		functions = append(functions, *f)
	}
	slices.SortFunc(functions, func(a, b functionTime) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.name, b.name), cmp.Compare(a.file, b.file))
	})
	return functions
}

func renderFunctions(w io.Writer, title string, rows []*row, v View, of func(*row) (times map[functionKey]int64, all int64)) {
	if v.Functions <= 0 {
		return
	}
	hot := make([][]functionTime, len(rows))
	longest := 0
	for i, r := range rows {
		times, _ := of(r)
		functions := hottest(times)
		hot[i] = functions[:min(len(functions), v.Functions)]
		for _, f := range hot[i] {
			longest = max(longest, terminal.Width(terminal.Escape(f.name)))
		}
	}
	names, files := functionColumns(v.Columns, longest)
	padded := names
	if names == 0 {
		padded = wholeNames
	}
	fmt.Fprintln(w, title)
	for i, r := range rows {
		_, all := of(r)
		if len(hot[i]) == 0 {
			continue
		}
		values := make([]string, len(r.values))
		for i, v := range r.values {
			values[i] = showValue(v)
		}
		fmt.Fprintf(w, "\n  %s\n", shorten(strings.Join(values, ", "), v.Columns-2))
		for _, f := range hot[i] {
			line := fmt.Sprintf("  %8s  %-*s", percent(f.ns, all), padded, shorten(terminal.Escape(f.name), names))
			if names == 0 || files > 0 {
				line += "  " + showFiles(f, files)
			}
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
	}
	fmt.Fprintln(w)
}

// What the columns of functions have where there is room.
const (
	leastNames = 10
	wholeNames = 44
	mostFiles  = 20
	leastFiles = 8
)

// functionColumns are the widths of the names of functions and of files in a row of so many
// columns, whose first 12 and 2 in between are taken; no room for files is 0. What names do not
// need, files have. Without bound both are whole.
func functionColumns(columns, longest int) (names, files int) {
	if columns <= 0 {
		return 0, 0
	}
	room := max(columns-14, leastNames)
	files = min(max(room-min(longest, wholeNames), leastFiles), mostFiles)
	if room-files < leastNames {
		return room + 2, 0
	}
	return room - files, files
}

// shorten cuts a text where there is a bound.
func shorten(text string, columns int) string {
	if columns <= 0 {
		return text
	}
	return terminal.Shorten(text, columns)
}

// showFiles names the executable of a function, or one of several.
func showFiles(f functionTime, columns int) string {
	if f.file == "" && f.files == 1 {
		return "" // generated code, or memory that no process has a file for
	}
	name := terminal.Escape(path.Base("/" + f.file))
	if f.files == 1 {
		return shorten(name, columns)
	}
	more := fmt.Sprintf(" +%d", f.files-1)
	if columns > 0 {
		columns = max(columns-len(more), 1)
	}
	return shorten(name, columns) + more
}
