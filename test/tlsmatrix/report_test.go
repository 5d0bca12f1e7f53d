//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

// tally counts cells that agree, of all.
type tally struct{ agree, total int }

func (t tally) String() string {
	if t.total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", t.agree, t.total)
}

// table is what the cells of one architecture have come to, by two axes.
type table struct {
	corner     string
	rows, cols []string // in the order of their first appearance
	cells      map[[2]string]*tally
}

func (t *table) add(row, col string, agree bool) {
	if t.cells == nil {
		t.cells = map[[2]string]*tally{}
	}
	t.rows, t.cols = appendNew(t.rows, row), appendNew(t.cols, col)
	entry := t.cells[[2]string{row, col}]
	if entry == nil {
		entry = &tally{}
		t.cells[[2]string{row, col}] = entry
	}
	entry.total++
	if agree {
		entry.agree++
	}
}

func appendNew(list []string, s string) []string {
	for _, other := range list {
		if other == s {
			return list
		}
	}
	return append(list, s)
}

func (t *table) print(b *strings.Builder) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n", t.corner, strings.Join(t.cols, "\t"))
	for _, row := range t.rows {
		fmt.Fprint(w, row)
		for _, col := range t.cols {
			entry := t.cells[[2]string{row, col}]
			if entry == nil {
				entry = &tally{}
			}
			fmt.Fprintf(w, "\t%s", entry)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	b.WriteByte('\n')
}

// report is the table of cells that agree, of all: model by load, and what is
// particular about a library or the place of its variable by target.
func report(arch string, verdicts []verdict, took time.Duration) string {
	loads := table{corner: arch}
	kinds := table{corner: arch}
	var all tally
	samples := 0
	for i := range verdicts {
		v := &verdicts[i]
		c, agree := v.cell, v.err == nil
		loads.add(c.Libc+" "+modelName(c.Model), string(c.Load), agree)
		for _, kind := range []string{string(c.Surplus), c.Place.String(), string(c.Look)} {
			if kind != "" {
				kinds.add(kind, c.Libc+" "+c.Compiler, agree)
			}
		}
		all.total++
		if agree {
			all.agree++
		}
		samples += v.samples
	}
	var b strings.Builder
	b.WriteString("cells that agree, of all\n\n")
	loads.print(&b)
	kinds.print(&b)
	fmt.Fprintf(&b, "%s: %s cells agree, with %d samples, in %.0f s\n", arch, all, samples, took.Seconds())
	return b.String()
}

func modelName(m cell.Model) string {
	return map[cell.Model]string{
		cell.LocalExec: "local-exec", cell.InitialExec: "initial-exec",
		cell.GeneralDynamic: "general-dynamic", cell.Descriptor: "TLSDESC",
	}[m]
}
