package writercheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Verdict is what became of a rule.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"
	Broken  Verdict = "broken"
	Against Verdict = "against_advice" // a recommendation that is not followed
	NotSeen Verdict = "not_seen"       // nothing was seen that the rule is about
)

const (
	// maxObserved bounds the breaches of one rule that are told apart.
	maxObserved = 3
	// movedShare is of how many readings one at most says nothing of what is moved meanwhile.
	movedShare = 100
	// maxObservedBytes bounds what is kept of each.
	maxObservedBytes = 300
)

// Result is a rule and what became of it.
type Result struct {
	Rule
	Verdict Verdict
	Held    uint64 // how often it held when it was looked at
	Broke   uint64 // how often not
	// Observed are values that break the rule, the first few that differ; else the last one
	// that keeps it. Bytes of the process, escaped by no one.
	Observed []string
}

// Report is what was seen of a process.
type Report struct {
	PID     int
	Program string // path of the executable; "" if not known
	// Formats are those that the process publishes in, or begins to: a symbol of it is there, or
	// a mapping.
	Formats []Format
	Results []Result // of these formats, in the order of Rules
	Reads   Reads

	inactive string // why the first label source that cannot be read is not read; "": there is none
}

// Reads are numbers of what was looked at.
type Reads struct {
	Threads   int    `json:"threads"`
	Without   int    `json:"threads_without_labels"` // of these, at each stop
	Stops     uint64 `json:"stops"`                  // of threads
	Published uint64 `json:"published"`              // readings with labels or a context in them
	Updating  uint64 `json:"updating"`               // records that said that they were being written
	Invalid   uint64 `json:"invalid"`                // sets and records that broke a rule
	Contexts  uint64 `json:"process_contexts"`       // readings of the process context
	Written   uint64 `json:"contexts_updating"`      // of these, while it was being written
}

// Verdict is that of the whole: Broken if a rule is, NotSeen if there is nothing to judge by,
// else Holds.
func (r *Report) Verdict() Verdict {
	for i := range r.Results {
		if r.Results[i].Verdict == Broken {
			return Broken
		}
	}
	threads := slices.ContainsFunc(r.Formats, func(f Format) bool { return f != ProcessContext })
	if len(r.Formats) == 0 || threads && r.Reads.Published == 0 || r.Reads.Published == 0 && r.Reads.Contexts == r.Reads.Written {
		return NotSeen
	}
	return Holds
}

// Why says in words why there is nothing to judge by.
func (r *Report) Why() string {
	switch {
	case len(r.Formats) == 0:
		return "nothing is published: no file that the process maps has a symbol of these formats, and there is no process context"
	case r.Reads.Stops == 0 && r.inactive != "":
		return "where the variable is, is not known: " + r.inactive
	case r.Reads.Stops == 0:
		return "no thread could be read"
	case r.Reads.Updating > 0:
		return fmt.Sprintf("none of %d records was complete: valid was 0 each time; look longer (--seconds), or set valid to 1 when a record is complete", r.Reads.Updating)
	}
	return "no thread had labels or a context when it was looked at; look longer (--seconds), or while requests are served"
}

// tally counts what becomes of rules.
type tally struct {
	results map[string]*Result
}

func newTally() *tally { return &tally{results: map[string]*Result{}} }

func (t *tally) of(id string) *Result {
	r := t.results[id]
	if r == nil {
		r = &Result{}
		t.results[id] = r
	}
	return r
}

// check notes whether a rule holds, and with which value. What is said of values that hold is
// made for the first one only.
func (t *tally) check(id string, ok bool, format string, args ...any) bool {
	r := t.of(id)
	if ok {
		if r.Held++; r.Held == 1 && r.Broke == 0 && format != "" {
			r.Observed = []string{cut(fmt.Sprintf(format, args...))}
		}
		return true
	}
	if r.Broke++; r.Broke == 1 {
		r.Observed = nil
	}
	if len(r.Observed) < maxObserved {
		if text := cut(fmt.Sprintf(format, args...)); !slices.Contains(r.Observed, text) {
			r.Observed = append(r.Observed, text)
		}
	}
	return false
}

// note says why nothing could be seen that a rule is about.
func (t *tally) note(id, text string) {
	if r := t.of(id); r.Held+r.Broke == 0 {
		r.Observed = []string{cut(text)}
	}
}

// results returns the rules of the formats with what became of them.
func (t *tally) all(formats []Format) []Result {
	var all []Result
	for _, rule := range Rules() {
		if !slices.Contains(formats, rule.Format) {
			continue
		}
		r := Result{Rule: rule, Verdict: NotSeen}
		if seen := t.results[rule.ID]; seen != nil {
			r.Held, r.Broke, r.Observed = seen.Held, seen.Broke, seen.Observed
		}
		switch {
		case r.Broke > 0 && rule.Advice:
			r.Verdict = Against
		case r.Broke > 0 && (!rule.Moved || r.Broke > r.Held/movedShare):
			r.Verdict = Broken
		case r.Held > 0:
			r.Verdict = Holds
		}
		all = append(all, r)
	}
	return all
}

// cut bounds what is kept of a text. It ends where a character does.
func cut(s string) string {
	if len(s) <= maxObservedBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxObservedBytes], "") + "…"
}

// MarshalJSON implements json.Marshaler. The names are stable.
func (r *Result) MarshalJSON() ([]byte, error) {
	level := "required"
	if r.Advice {
		level = "recommended"
	}
	observed := make([]string, 0, len(r.Observed))
	for _, o := range r.Observed {
		observed = append(observed, strings.ToValidUTF8(o, "\uFFFD"))
	}
	return json.Marshal(struct {
		ID       string   `json:"id"`
		Format   Format   `json:"format"`
		Level    string   `json:"level"`
		Title    string   `json:"title"`
		Verdict  Verdict  `json:"verdict"`
		Document string   `json:"document"`
		Section  string   `json:"section"`
		Held     uint64   `json:"held"`
		Broken   uint64   `json:"broken"`
		Observed []string `json:"observed"`
		Remedy   string   `json:"remedy"`
	}{r.ID, r.Format, level, r.Title, r.Verdict, r.Document, r.Section, r.Held, r.Broke, observed, r.Remedy})
}
