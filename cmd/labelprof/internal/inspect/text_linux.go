// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// adviceColumns is where lines of prose end.
const adviceColumns = 96

// writeText prints a report for people. All that comes from the process is escaped.
func (r *processReport) writeText(w io.Writer) {
	fmt.Fprintf(w, "process %d  %s\n", r.PID, terminal.Escape(r.Name))
	fmt.Fprintf(w, "  executable  %s\n", terminal.Escape(r.Executable))
	fmt.Fprintf(w, "  C library   %s\n", strings.TrimSpace(r.CLibrary+" "+r.LibraryVersion))
	r.Context.writeText(w)
	for i := range r.Sources {
		r.Sources[i].writeText(w, i+1)
	}
	if r.readable() {
		r.writeThreads(w)
	} else {
		r.writeWhy(w)
	}
	if r.Changed {
		fmt.Fprintln(w, "\nThe process has changed meanwhile, by exec or by loading a library: look again.")
	}
	for _, text := range r.Advice {
		fmt.Fprintf(w, "\n%s\n", terminal.Wrap("to do: "+terminal.Escape(text), adviceColumns))
	}
}

func (s *sourceReport) writeText(w io.Writer, number int) {
	fmt.Fprintf(w, "\nsource %d  %s: %s\n", number, s.ABI, s.Symbol)
	fmt.Fprintf(w, "  file        %s\n", terminal.Escape(s.File))
	if s.source.ABI == record.ABIGo {
		fmt.Fprintf(w, "  runtime     %s\n", terminal.Escape(s.Model))
	} else {
		fmt.Fprintf(w, "  TLS model   %s\n", modelText(s.Model))
	}
	if s.Location != nil {
		fmt.Fprintf(w, "  location    %v\n", s.Location)
	}
	fmt.Fprintf(w, "  state       %s: %s\n", s.State, stateText(s.state))
	if s.Reason != "" {
		fmt.Fprintf(w, "  reason      %s\n", terminal.Escape(s.Reason))
	}
}

// writeWhy prints why there are no labels.
func (r *processReport) writeWhy(w io.Writer) {
	if len(r.Sources) > 0 {
		fmt.Fprintln(w, "\nno labels: none of the label sources can be read")
	} else {
		fmt.Fprintln(w, "\nno labels: no file that the process maps defines one of the thread-local variables")
		for abi := record.ABIV0; abi < record.NumABIs; abi++ {
			if abi.Symbol() != "" {
				fmt.Fprintf(w, "  %s (%s)\n", abi.Symbol(), abi)
			}
		}
	}
	if len(r.Files) > 0 {
		fmt.Fprintln(w, "\nfiles looked at, and the size of their thread-local variables (others have none)")
		for i := range r.Files {
			f := &r.Files[i]
			size := strconv.FormatUint(f.TLSBytes, 10) + " bytes"
			if f.TLSBytes == 0 {
				size = "no thread-local variables"
			}
			if f.library {
				size += ", the C library's own"
			}
			fmt.Fprintf(w, "  %s: %s\n", terminal.Escape(f.Path), size)
			for _, note := range f.Notes {
				fmt.Fprintf(w, "    %s\n", terminal.Escape(note))
			}
		}
	}
	for _, hint := range r.Hints {
		fmt.Fprintf(w, "\n%s\n", terminal.Escape(hint))
	}
}

// quoted escapes a string, and puts it into quotes where its end would be unclear.
func quoted(s string) string {
	e := terminal.Escape(s)
	if e == "" || strings.ContainsAny(e, ` ="()`) {
		return `"` + strings.ReplaceAll(e, `"`, `\"`) + `"`
	}
	return e
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
