// Command figures writes what benchmarks have measured into a page of the documentation:
// figures DIR PAGE, where DIR has the files that package paired keeps. Each benchmark has a
// section, of its last run that came to verdicts; sections of those of which there is no such
// run stay as they are.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

const head = `# Benchmarks

Written by ` + "`make figures`" + ` from the last full run of each, not by hand; [measurements](measurements.md) says what they mean, [test/README.md](../test/README.md#what-protects-what) what each one is. A claim is met when its whole interval is at or below the goal, missed when all of it lies above, and else not decided. Figures are medians, with the lowest and the highest round.
`

// line is any line of a file of package paired.
type line struct {
	Benchmark string    `json:"benchmark"`
	Date      time.Time `json:"date"`
	Commit    string    `json:"commit"`
	Kernel    string    `json:"kernel"`
	Arch      string    `json:"arch"`
	Processor string    `json:"processor"`
	CPUs      int       `json:"cpus"`
	Load      string    `json:"load"`

	Of      string         `json:"of"`
	Round   int            `json:"round"`
	Subject string         `json:"subject"`
	Figures paired.Figures `json:"figures"`

	Claim    string          `json:"claim"`
	Unit     string          `json:"unit"`
	Goal     float64         `json:"goal"`
	Verdict  paired.Verdict  `json:"verdict"`
	Interval paired.Interval `json:"interval"`
}

// run is one run of a benchmark.
type run struct {
	line   // its first one
	claims []line
	rounds int
	series []string // names, in order
	values map[string]map[string]map[string][]float64
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: figures DIR PAGE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func write(dir, page string) error {
	sections := map[string]string{}
	old, err := os.ReadFile(page)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, old, _ = bytes.Cut(old, []byte("\n## "))
	for text := range strings.SplitSeq(string(old), "\n## ") {
		if name, rest, ok := strings.Cut(text, "\n"); ok {
			sections[name] = strings.TrimRight(rest, "\n") + "\n"
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return err
	}
	latest := map[string]*run{}
	for _, path := range paths {
		r, err := read(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if r.decided() && (latest[r.Benchmark] == nil || r.Date.After(latest[r.Benchmark].Date)) {
			latest[r.Benchmark] = r
		}
	}
	for name, r := range latest {
		sections[name] = r.section()
	}
	var to strings.Builder
	to.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(&to, "\n## %s\n%s", name, sections[name])
	}
	return os.WriteFile(page, []byte(to.String()), 0o644) //nolint:gosec // a page of the documentation
}

func read(path string) (*run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &run{values: map[string]map[string]map[string][]float64{}}
	decoder := json.NewDecoder(bufio.NewReader(f))
	for {
		var l line
		switch err := decoder.Decode(&l); {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return nil, err
		case l.Benchmark != "":
			r.line = l
		case l.Claim != "":
			r.claims = append(r.claims, l)
		case l.Subject != "":
			r.add(&l)
		}
	}
}

func (r *run) add(l *line) {
	r.rounds = max(r.rounds, l.Round+1)
	if r.values[l.Of] == nil {
		r.series = append(r.series, l.Of)
		r.values[l.Of] = map[string]map[string][]float64{}
	}
	for figure, v := range l.Figures {
		if r.values[l.Of][figure] == nil {
			r.values[l.Of][figure] = map[string][]float64{}
		}
		r.values[l.Of][figure][l.Subject] = append(r.values[l.Of][figure][l.Subject], v)
	}
}

// decided reports whether the run came to verdicts: one that was broken off, or is a quick form,
// has none.
func (r *run) decided() bool {
	return len(r.claims) > 0 && !slices.ContainsFunc(r.claims, func(c line) bool { return c.Verdict == paired.None })
}

func (r *run) section() string {
	var to strings.Builder
	kernel, _, _ := strings.Cut(r.Kernel, "-") // without what its builder calls it
	fmt.Fprintf(&to, "\n*%s, %s, %d CPUs (%s), %s, kernel %s, load before the start %s; %d rounds.*\n",
		r.Date.Format(time.DateOnly), r.Commit, r.CPUs, r.Processor, r.Arch, kernel, r.Load, r.rounds)
	to.WriteString("\n| claim | median | interval | goal | verdict |\n|---|---|---|---|---|\n")
	for _, c := range r.claims {
		unit := ""
		if c.Unit != "" {
			unit = " " + c.Unit
		}
		fmt.Fprintf(&to, "| %s | %.3g%s | %.3g to %.3g (%.1f %%) | %.3g%s | %s |\n",
			cell(c.Claim), c.Interval.Median, unit, c.Interval.Low, c.Interval.High, 100*c.Interval.Coverage, c.Goal, unit, c.Verdict)
	}
	for _, of := range r.series {
		r.table(&to, of)
	}
	return to.String()
}

// table has the figures of one series of measurements.
func (r *run) table(to *strings.Builder, of string) {
	subjects := map[string]bool{}
	for _, by := range r.values[of] {
		for subject := range by {
			subjects[subject] = true
		}
	}
	columns := slices.SortedFunc(maps.Keys(subjects), func(a, b string) int {
		return cmp.Or(-cmp.Compare(boolToInt(a == "ours"), boolToInt(b == "ours")), cmp.Compare(a, b))
	})
	fmt.Fprintf(to, "\n| %s |", cell(of))
	for _, c := range columns {
		fmt.Fprintf(to, " %s |", cell(c))
	}
	to.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, figure := range slices.Sorted(maps.Keys(r.values[of])) {
		fmt.Fprintf(to, "| %s |", cell(figure))
		for _, c := range columns {
			values := r.values[of][figure][c]
			if len(values) == 0 {
				to.WriteString(" |")
				continue
			}
			fmt.Fprintf(to, " %.4g (%.4g–%.4g) |", paired.Of(values).Median, slices.Min(values), slices.Max(values))
		}
		to.WriteString("\n")
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// cell makes text safe for a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }
