// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
	"github.com/customlabels/otelcol-customlabels/internal/writercheck"
)

// Verdicts in words of one width.
func word(v writercheck.Verdict) string {
	switch v {
	case writercheck.Holds:
		return "holds   "
	case writercheck.Broken:
		return "BROKEN  "
	case writercheck.Against:
		return "advice  "
	}
	return "not seen"
}

// text is a report for people.
func text(r *judgement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "process %d (%s)\n", r.PID, terminal.Escape(path.Base(r.Program)))
	fmt.Fprintf(&b, "%s\n", readsText(&r.Reads))
	format := writercheck.Format("")
	for i := range r.Results {
		x := &r.Results[i]
		if x.Format != format {
			format = x.Format
			fmt.Fprintf(&b, "\n%s (%s)\n", format, x.Document)
		}
		fmt.Fprintf(&b, "  %s  %s\n", word(x.Verdict), x.Title)
		switch x.Verdict {
		case writercheck.Broken, writercheck.Against:
			fmt.Fprintf(&b, "            rule  %s: %s, %q\n", x.ID, x.Document, x.Section)
			for _, o := range x.Observed {
				fmt.Fprintf(&b, "            seen  %s\n", terminal.Escape(o))
			}
			fmt.Fprintf(&b, "            often %d of %d\n", x.Broke, x.Broke+x.Held)
			fmt.Fprintf(&b, "            do    %s\n", x.Remedy)
		case writercheck.NotSeen:
			for _, o := range x.Observed {
				fmt.Fprintf(&b, "            why   %s\n", terminal.Escape(o))
			}
		}
	}
	b.WriteString("\n")
	for _, line := range r.besides() {
		fmt.Fprintln(&b, terminal.Escape(line))
	}
	fmt.Fprintf(&b, "%s\n", r.conclusion())
	return b.String()
}

func readsText(r *writercheck.Reads) string {
	return fmt.Sprintf("%d thread(s), of which %d had no labels at any stop, stopped %d times: %d readings with labels or a context, %d of records being written, %d that break a rule; process context read %d times, %d of them while it was being written",
		r.Threads, r.Without, r.Stops, r.Published, r.Updating, r.Invalid, r.Contexts, r.Written)
}

func (j *judgement) conclusion() string {
	if j.Verdict() == writercheck.NotSeen {
		return "not judged: " + j.Why() + " (" + counts(j.Report) + ")"
	}
	return counts(j.Report)
}

func counts(r *writercheck.Report) string {
	n := map[writercheck.Verdict]int{}
	for i := range r.Results {
		n[r.Results[i].Verdict]++
	}
	return fmt.Sprintf("%d rules hold, %d broken, %d recommendations not followed, %d not seen",
		n[writercheck.Holds], n[writercheck.Broken], n[writercheck.Against], n[writercheck.NotSeen])
}

// markdown is a report for the summary of a job.
func markdown(r *judgement) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### labelprof check: %s\n\n%s\n\n%s\n", cell(path.Base(r.Program)), r.conclusion(), readsText(&r.Reads))
	for _, line := range r.besides() {
		fmt.Fprintf(&b, "\n%s\n", cell(line))
	}
	if len(r.Results) == 0 {
		return b.String()
	}
	b.WriteString("\n| | rule | seen | specification | do |\n|---|---|---|---|---|\n")
	for i := range r.Results {
		x := &r.Results[i]
		mark, remedy := "✅", ""
		switch x.Verdict {
		case writercheck.Broken:
			mark, remedy = "❌", x.Remedy
		case writercheck.Against:
			mark, remedy = "⚠️", x.Remedy
		case writercheck.NotSeen:
			mark = "not seen"
		}
		fmt.Fprintf(&b, "| %s | %s: %s | %s | %s, %s | %s |\n", mark, x.ID, cell(x.Title), cell(strings.Join(x.Observed, "; ")), x.Document, x.Section, cell(remedy))
	}
	return b.String()
}

// cell makes a text safe for a cell of a table in Markdown, in which HTML would be HTML.
func cell(s string) string {
	return strings.NewReplacer("|", "&#124;", "<", "&lt;", ">", "&gt;", "&", "&amp;", "`", "&#96;", "*", "&#42;", "_", "&#95;",
		"[", "&#91;", "]", "&#93;", "!", "&#33;", "@", "&#64;").Replace(terminal.Escape(s))
}

// writeJSON prints a report, with escapes for what is not printable. The JSON names are stable.
func writeJSON(w io.Writer, r *judgement) error {
	results := make([]*writercheck.Result, len(r.Results))
	for i := range r.Results {
		results[i] = &r.Results[i]
	}
	formats := r.Formats
	if formats == nil {
		formats = []writercheck.Format{} // rather than null
	}
	type other struct {
		PID     int                 `json:"pid"`
		Program string              `json:"program"`
		Verdict writercheck.Verdict `json:"verdict"`
	}
	out := struct {
		other                           // of the process that decides
		Reason    string                `json:"reason,omitempty"` // why it could not be judged
		Formats   []writercheck.Format  `json:"formats"`
		Reads     writercheck.Reads     `json:"reads"`
		Rules     []*writercheck.Result `json:"rules"`
		Others    []other               `json:"others,omitempty"`      // of a command, watched besides
		Unwatched []int                 `json:"not_watched,omitempty"` // that publish, too
	}{other{r.PID, terminal.ValidUTF8(r.Program), r.Verdict()}, "", formats, r.Reads, results, nil, r.unwatched}
	for _, o := range r.others {
		out.Others = append(out.Others, other{o.PID, terminal.ValidUTF8(o.Program), o.Verdict()})
	}
	if out.Verdict == writercheck.NotSeen {
		out.Reason = r.Why()
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(terminal.EscapeJSON(append(data, '\n')))
	return err
}
