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
)

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
			if r.Sources[reading.Source-1].source.ABI.ThreadContext() && slices.ContainsFunc(reading.Labels, isIndex) {
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
