//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printTable prints kernel by architecture.
func printTable(w io.Writer, outcomes []outcome) error {
	var rows []string
	at := map[[2]string]*outcome{}
	for i := range outcomes {
		o := &outcomes[i]
		row := o.cell.row()
		if len(rows) == 0 || rows[len(rows)-1] != row {
			rows = append(rows, row)
		}
		at[[2]string{row, o.cell.arch}] = o
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "label assertions\t%s\n", strings.Join(architectures[:], "\t"))
	for _, row := range rows {
		columns := []string{row}
		for _, arch := range architectures {
			text := "-"
			if o := at[[2]string{row, arch}]; o != nil {
				text = o.String()
			}
			columns = append(columns, text)
		}
		fmt.Fprintln(tw, strings.Join(columns, "\t"))
	}
	return tw.Flush()
}

// String is the outcome as the table has it.
func (o *outcome) String() string {
	text := fmt.Sprint(o.assertions)
	if o.err != nil {
		text = "FAILED"
	}
	if o.release != "" {
		text += ", " + o.release
	}
	return fmt.Sprintf("%s, %d s", text, int(o.took.Round(time.Second).Seconds()))
}
