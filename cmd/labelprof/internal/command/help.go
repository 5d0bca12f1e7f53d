// SPDX-License-Identifier: Apache-2.0

package command

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Help is what a command says of itself when it is asked with -h.
type Help struct {
	Name     string
	Synopsis []string // what stands behind the name, a line each
	About    string   // some lines
}

// write prints the help: synopsis, what it is for, exit codes, flags.
func (h *Help) write(w io.Writer, flags *flag.FlagSet) {
	for i, line := range h.Synopsis {
		fmt.Fprintf(w, "%s labelprof %s %s\n", []string{"usage:", "      "}[min(i, 1)], h.Name, line)
	}
	fmt.Fprintf(w, "\n%s\n\nExit codes:\n", strings.TrimSpace(h.About))
	for code, means := range Exits(h.Name) {
		fmt.Fprintf(w, "  %d  %s\n", code, means)
	}
	fmt.Fprint(w, "\nFlags:\n")
	flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "%s\n      %s", strings.TrimRight("  --"+f.Name+" "+value, " "), usage)
		if !slices.Contains([]string{"", "0", "0s", "false"}, f.DefValue) {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}
