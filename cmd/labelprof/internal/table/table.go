// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// Bounds of what a table keeps.
const (
	maxRows       = 10_000 // label values
	maxShares     = 50_000 // pairs of process and label values
	maxFunctions  = 50_000 // over all rows
	maxProcesses  = 10_000
	maxTableBytes = 64 << 20 // of all their texts
)

// Table sums CPU time, and time off the CPU, by the values of some labels.
type Table struct {
	by        []string
	rows      map[rowKey]*row
	others    row // what found no room
	shares    map[share]int64
	processes map[processKey]struct{}
	keys      keys
	functions int
	bytes     int
	// moreProcesses: some found no room.
	moreProcesses bool

	hits, cpuNs   int64
	absences      int64 // from the CPU
	offCPUNs      int64
	tracedNs      int64 // CPU time with a trace id
	unsharedNs    int64 // CPU time that found no room in shares
	otherRowHits  int64
	otherFuncHits int64
}

type share struct {
	pid int64
	row rowKey
}

type processKey struct {
	pid  int64
	name string
}

// New returns an empty table by the labels of these keys.
func New(by []string) *Table {
	return &Table{
		by:        by,
		rows:      map[rowKey]*row{},
		others:    newRow(nil),
		shares:    map[share]int64{},
		processes: map[processKey]struct{}{},
		keys:      keys{missing: slices.Clone(by), hits: map[keyOf]int64{}},
	}
}

// processOf tells processes apart; in a pprof file they are labels. None is one that is not known.
func processOf(s *sample.Sample) processKey {
	if s.Process.PID != 0 || s.Process.Name != "" {
		return processKey{s.Process.PID, s.Process.Name}
	}
	pid, _ := s.Lookup(sample.KeyPID)
	name, _ := s.Lookup(sample.KeyProcessName)
	number, _ := strconv.ParseInt(pid, 10, 64)
	return processKey{number, name}
}

// Add takes in a sample.
func (t *Table) Add(s *sample.Sample) {
	process := processOf(s)
	if _, ok := t.processes[process]; !ok && process != (processKey{}) {
		if len(t.processes) < maxProcesses && t.room(len(process.name)) {
			t.processes[process] = struct{}{}
		} else {
			t.moreProcesses = true
		}
	}
	values := make([]value, len(t.by))
	for i, key := range t.by {
		values[i].text, values[i].present = s.Lookup(key)
	}
	if len(t.keys.missing) > 0 {
		t.keys.add(s, t.room)
	}
	key := encodeValues(values)
	r := t.row(key, values)
	if r == &t.others {
		t.otherRowHits += s.Hits
	}
	if s.OffCPU() {
		t.absences += s.Hits
		t.offCPUNs = sample.AddNs(t.offCPUNs, s.Ns)
		r.offCPUNs = sample.AddNs(r.offCPUNs, s.Ns)
		t.addFunction(r.waits, s)
		return
	}
	t.hits += s.Hits
	t.cpuNs = sample.AddNs(t.cpuNs, s.Ns)
	if s.TraceID != "" {
		t.tracedNs = sample.AddNs(t.tracedNs, s.Ns)
	}
	r.hits += s.Hits
	r.cpuNs = sample.AddNs(r.cpuNs, s.Ns)
	t.addFunction(r.functions, s)
	t.addShare(share{process.pid, key}, s.Ns)
}

// room takes room for a text, if there is some.
func (t *Table) room(bytes int) bool {
	if t.bytes+bytes > maxTableBytes {
		return false
	}
	t.bytes += bytes
	return true
}

func (t *Table) row(key rowKey, values []value) *row {
	if r, ok := t.rows[key]; ok {
		return r
	}
	if len(t.rows) >= maxRows || !t.room(2*len(key)) {
		return &t.others
	}
	r := newRow(values)
	t.rows[key] = &r
	return &r
}

func (t *Table) addFunction(functions map[functionKey]int64, s *sample.Sample) {
	top := s.Top()
	if top == nil {
		return
	}
	key := functionKey{sample.FrameName(top), top.Mapping.File, sample.Named(top)}
	if _, ok := functions[key]; !ok {
		if t.functions >= maxFunctions || !t.room(len(key.name)+len(key.file)) {
			key = functionKey{name: others}
			t.otherFuncHits += s.Hits
		} else {
			t.functions++
		}
	}
	functions[key] = sample.AddNs(functions[key], s.Ns)
}

func (t *Table) addShare(key share, cpuNs int64) {
	if _, ok := t.shares[key]; !ok && (len(t.shares) >= maxShares || !t.room(len(key.row))) {
		t.unsharedNs = sample.AddNs(t.unsharedNs, cpuNs)
		return
	}
	t.shares[key] = sample.AddNs(t.shares[key], cpuNs)
}

// Empty reports whether there is nothing to show.
func (t *Table) Empty() bool { return t.hits == 0 && t.cpuNs == 0 && t.absences == 0 }

// Notes are the keys that no sample has, and the counters of what found no room, as far as there
// is any, a sentence each.
func (t *Table) Notes() []string {
	var notes []string
	if !t.Empty() {
		notes = t.keys.notes()
	}
	note := func(count int64, format string) {
		if count > 0 {
			notes = append(notes, fmt.Sprintf(format, count))
		}
	}
	note(t.otherRowHits, "%d samples under "+others+": too many label values")
	note(t.otherFuncHits, "%d samples under "+others+": too many functions")
	note(t.unsharedNs, "%d ns not compared with the truth: too many processes and label values")
	return notes
}
