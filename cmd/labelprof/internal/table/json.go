// SPDX-License-Identifier: Apache-2.0

package table

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// jsonVersion changes when a field goes or means something else, not when one is added.
const jsonVersion = 1

// The document of `labelprof top --json`: docs/labelprof.md describes it. Names are stable.
type document struct {
	Version       int         `json:"version"`
	By            []string    `json:"by"`
	CPUNs         int64       `json:"cpu_ns"`
	Samples       int64       `json:"samples"`
	TracedCPUNs   int64       `json:"traced_cpu_ns"`
	OffCPUNs      int64       `json:"off_cpu_ns"`
	Absences      int64       `json:"absences"`
	Processes     int         `json:"processes"`
	MoreProcesses bool        `json:"more_processes"`
	Rows          []jsonRow   `json:"rows"`
	Others        jsonSums    `json:"others"`
	Compared      *jsonTruths `json:"compared,omitempty"`
	Notes         []string    `json:"notes"`
}

// jsonSums are what a row adds up.
type jsonSums struct {
	CPUNs    int64 `json:"cpu_ns"`
	Samples  int64 `json:"samples"`
	OffCPUNs int64 `json:"off_cpu_ns"`
}

// jsonRow is a combination of values. A label that is absent is in none of the maps, one that is
// no UTF-8 in the second.
type jsonRow struct {
	Labels       map[string]string `json:"labels"`
	LabelsBase64 map[string][]byte `json:"labels_base64,omitempty"`
	jsonSums
	Functions       []jsonFunction `json:"functions"`
	OffCPUFunctions []jsonFunction `json:"off_cpu_functions"`
	// Of the labelled CPU time of the processes that are compared, from 0 to 1.
	MeasuredShare *float64 `json:"measured_share,omitempty"`
	TrueShare     *float64 `json:"true_share,omitempty"`
}

// jsonFunction is a function with its own time, and one of the files that have it.
type jsonFunction struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Files int    `json:"files"`
	Ns    int64  `json:"ns"`
}

// jsonTruths are the processes that told their truth, and those that were compared with it.
type jsonTruths struct {
	Told            int   `json:"told"`
	Processes       int   `json:"processes"`
	SampledCPUNs    int64 `json:"sampled_cpu_ns"`
	UnlabelledCPUNs int64 `json:"unlabelled_cpu_ns"`
}

// RenderJSON prints what Render does as one JSON document: the same rows with the same sums, and
// names that are whole. What is not printable is escaped.
func (t *Table) RenderJSON(w io.Writer, v View) error {
	d := document{
		Version: jsonVersion, By: t.by, CPUNs: t.cpuNs, Samples: t.hits, TracedCPUNs: t.tracedNs, OffCPUNs: t.offCPUNs, Absences: t.absences,
		Processes: len(t.processes), MoreProcesses: t.moreProcesses, Rows: []jsonRow{}, Notes: append([]string{}, v.Notes...),
	}
	c := t.compare(v.Truths)
	if c.expected > 0 {
		d.Compared = &jsonTruths{c.expected, c.processes, c.sampledNs, c.unlabelled}
	}
	rows := t.sorted()
	shown := min(len(rows), v.Rows)
	for _, r := range rows[:shown] {
		d.Rows = append(d.Rows, t.jsonRow(r, c, v.Functions))
	}
	missing := c.missing(t)
	for _, values := range missing[:min(len(missing), max(v.Rows-shown, 0))] {
		d.Rows = append(d.Rows, t.jsonRow(&row{values: values}, c, 0))
	}
	d.Others = sumsOf(restOf(rows[shown:], t.others))
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return err
	}
	_, err := w.Write(terminal.EscapeJSON(b.Bytes()))
	return err
}

func sumsOf(r row) jsonSums { return jsonSums{r.cpuNs, r.hits, r.offCPUNs} }

func (t *Table) jsonRow(r *row, c comparison, functions int) jsonRow {
	out := jsonRow{
		Labels: map[string]string{}, jsonSums: sumsOf(*r),
		Functions: jsonFunctions(r.functions, functions), OffCPUFunctions: jsonFunctions(r.waits, functions),
	}
	for i, v := range r.values {
		switch {
		case !v.present:
		case utf8.ValidString(v.text):
			out.Labels[t.by[i]] = v.text
		default:
			if out.LabelsBase64 == nil {
				out.LabelsBase64 = map[string][]byte{}
			}
			out.LabelsBase64[t.by[i]] = []byte(v.text)
		}
	}
	if measured, truth, ok := c.shares(r); ok {
		out.MeasuredShare, out.TrueShare = &measured, &truth
	}
	return out
}

func jsonFunctions(times map[functionKey]int64, count int) []jsonFunction {
	all := hottest(times)
	out := make([]jsonFunction, min(len(all), count))
	for i := range out {
		f := &all[i]
		out[i] = jsonFunction{terminal.ValidUTF8(f.name), terminal.ValidUTF8(f.file), f.files, f.ns}
	}
	return out
}
