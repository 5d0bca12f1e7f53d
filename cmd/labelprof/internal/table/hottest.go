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
				terminal.Shorten(terminal.Escape(f.name), functionColumns), showFiles(f))
		}
	}
	fmt.Fprintln(w)
}

// showFiles names the executable of a function, or one of several.
func showFiles(f functionTime) string {
	name := terminal.Escape(path.Base("/" + f.file))
	if f.files == 1 {
		return terminal.Shorten(name, fileColumns)
	}
	more := fmt.Sprintf(" +%d", f.files-1)
	return terminal.Shorten(name, fileColumns-len(more)) + more
}
