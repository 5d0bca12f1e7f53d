// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// writeText prints a report for people. All that comes from the process is escaped.
func (r *processReport) writeText(w io.Writer) {
	fmt.Fprintf(w, "process %d  %s\n", r.PID, terminal.Escape(r.Name))
	fmt.Fprintf(w, "  executable  %s\n", terminal.Escape(r.Executable))
	fmt.Fprintf(w, "  C library   %s\n", strings.TrimSpace(r.CLibrary+" "+r.LibraryVersion))
	r.Context.writeText(w)
	for i := range r.Sources {
		r.Sources[i].writeText(w, i+1)
	}
	if !r.readable() {
		r.writeWhy(w)
		return
	}
	r.writeThreads(w)
	if r.Changed {
		fmt.Fprintln(w, "\nThe process has changed meanwhile, by exec or by loading a library: look again.")
	}
}

func (s *sourceReport) writeText(w io.Writer, number int) {
	fmt.Fprintf(w, "\nsource %d  %s: %s\n", number, s.ABI, s.Symbol)
	fmt.Fprintf(w, "  file        %s\n", terminal.Escape(s.File))
	if s.abi == labels.ABIGo {
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
		for abi := labels.ABIV0; abi < labels.NumABIs; abi++ {
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

// writeThreads prints a line for each thread and source.
func (r *processReport) writeThreads(w io.Writer) {
	fmt.Fprintln(w)
	several := r.active() > 1
	g := terminal.Grid{Left: 5}
	head := []string{"TID", "THREAD", "VARIABLE", "NOW"}
	if several {
		head = append(head[:2:2], "SOURCE", "VARIABLE", "NOW")
	}
	g.Add(head...)
	for i := range r.Threads {
		t := &r.Threads[i]
		cells := []string{strconv.Itoa(t.TID), terminal.Escape(t.Name)}
		if t.Error != "" {
			if several {
				cells = append(cells, "")
			}
			g.Add(append(cells, "", terminal.Escape(t.Error))...)
		}
		for j := range t.Readings {
			reading := &t.Readings[j]
			row := cells[:2:2]
			if several {
				row = append(row, strconv.Itoa(reading.Source))
			}
			g.Add(append(row, reading.Variable, reading.text())...)
		}
	}
	g.Render(w)
	if r.hasKeyIndexes() {
		fmt.Fprintln(w, "  [N] is the attribute with key index N; the process context has no name for it")
	}
	if r.ThreadsLeftOut > 0 {
		fmt.Fprintf(w, "  and %d more threads (--threads)\n", r.ThreadsLeftOut)
	}
}

// hasKeyIndexes reports whether attributes without a name are shown.
func (r *processReport) hasKeyIndexes() bool {
	for i := range r.Threads {
		for j := range r.Threads[i].Readings {
			reading := &r.Threads[i].Readings[j]
			if r.Sources[reading.Source-1].abi.ThreadContext() && slices.ContainsFunc(reading.Labels, isIndex) {
				return true
			}
		}
	}
	return false
}

func isIndex(l labelText) bool { return strings.HasPrefix(l.key, "[") && strings.HasSuffix(l.key, "]") }

func (r *processReport) active() (n int) {
	for i := range r.Sources {
		if r.Sources[i].active() {
			n++
		}
	}
	return n
}

// text is what a thread has now, on one line.
func (r *readingReport) text() string {
	if r.Reason != "" {
		return notes(terminal.Escape(r.Reason), r.Irregular)
	}
	var parts []string
	if r.TraceID != "" {
		parts = append(parts, "trace_id="+r.TraceID, "span_id="+r.SpanID, "trace_flags="+r.Flags)
	}
	for _, l := range r.Labels {
		parts = append(parts, quoted(l.key)+"="+quoted(l.value))
	}
	text := strings.Join(parts, " ")
	if text == "" {
		text = "a record without ids and attributes"
	}
	if r.Truncated {
		return notes(text, append([]string{"cut to the bounds of a sample"}, r.Irregular...))
	}
	return notes(text, r.Irregular)
}

func notes(text string, all []string) string {
	if len(all) == 0 {
		return text
	}
	return text + "  (" + strings.Join(all, "; ") + ")"
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
