// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// Bounds of what a table keeps.
const (
	maxRows       = 10_000 // label values
	maxShares     = 50_000 // pairs of process and label values
	maxFunctions  = 50_000 // over all rows
	maxProcesses  = 10_000
	maxTableBytes = 64 << 20 // of all their texts
	otherFunction = "(others)"
)

// table sums CPU time, and time off the CPU, by the values of some labels.
type table struct {
	by        []string
	rows      map[rowKey]*row
	others    row // what found no room
	shares    map[share]int64
	processes map[processKey]struct{}
	functions int
	bytes     int

	hits, cpuNs   int64
	absences      int64 // from the CPU
	offCPUNs      int64
	tracedNs      int64 // CPU time with a trace id
	unsharedNs    int64 // CPU time that found no room in shares
	otherRowHits  int64
	otherFuncHits int64
}

// rowKey is the values of a row, each absent or with its length: see encodeValues.
type rowKey string

type row struct {
	values    []value
	hits      int64
	cpuNs     int64
	offCPUNs  int64
	functions map[functionKey]int64 // self time in ns
	waits     map[functionKey]int64 // time off the CPU in ns
}

// value is the value of a label, or its absence.
type value struct {
	text    string
	present bool
}

type functionKey struct {
	name, file string
	named      bool // name is not just an address
}

type share struct {
	pid int64
	row rowKey
}

type processKey struct {
	pid  int64
	name string
}

func newTable(by []string) *table {
	return &table{
		by:        by,
		rows:      map[rowKey]*row{},
		others:    newRow(nil),
		shares:    map[share]int64{},
		processes: map[processKey]struct{}{},
	}
}

func newRow(values []value) row {
	return row{values: values, functions: map[functionKey]int64{}, waits: map[functionKey]int64{}}
}

func (t *table) add(s *sample) {
	process := processKey{s.process.pid, s.process.name}
	if _, ok := t.processes[process]; !ok && len(t.processes) < maxProcesses && t.room(len(process.name)) {
		t.processes[process] = struct{}{}
	}
	values := make([]value, len(t.by))
	for i, key := range t.by {
		values[i].text, values[i].present = s.lookup(key)
	}
	key := encodeValues(values)
	r := t.row(key, values)
	if r == &t.others {
		t.otherRowHits += s.hits
	}
	if s.offCPU() {
		t.absences += s.hits
		t.offCPUNs = plus(t.offCPUNs, s.cpuNs)
		r.offCPUNs = plus(r.offCPUNs, s.cpuNs)
		t.addFunction(r.waits, s)
		return
	}
	t.hits += s.hits
	t.cpuNs += s.cpuNs
	if s.traceID != "" {
		t.tracedNs += s.cpuNs
	}
	r.hits += s.hits
	r.cpuNs += s.cpuNs
	t.addFunction(r.functions, s)
	t.addShare(share{s.process.pid, key}, s.cpuNs)
}

// room takes room for a text, if there is some.
func (t *table) room(bytes int) bool {
	if t.bytes+bytes > maxTableBytes {
		return false
	}
	t.bytes += bytes
	return true
}

func (t *table) row(key rowKey, values []value) *row {
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

func (t *table) addFunction(functions map[functionKey]int64, s *sample) {
	top := s.top()
	if top == nil {
		return
	}
	key := functionKey{frameName(top), top.Mapping.File, named(top)}
	if _, ok := functions[key]; !ok {
		if t.functions >= maxFunctions || !t.room(len(key.name)+len(key.file)) {
			key = functionKey{name: otherFunction}
			t.otherFuncHits += s.hits
		} else {
			t.functions++
		}
	}
	functions[key] = plus(functions[key], s.cpuNs)
}

func (t *table) addShare(key share, cpuNs int64) {
	if _, ok := t.shares[key]; !ok && (len(t.shares) >= maxShares || !t.room(len(key.row))) {
		t.unsharedNs += cpuNs
		return
	}
	t.shares[key] += cpuNs
}

// encodeValues is unambiguous whatever bytes the values hold.
func encodeValues(values []value) rowKey {
	var b []byte
	for _, v := range values {
		if !v.present {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(append(b, 1), uint64(len(v.text)))
		b = append(b, v.text...)
	}
	return rowKey(b)
}

// labelled says whether any of the labels is there.
func labelled(values []value) bool {
	return slices.ContainsFunc(values, func(v value) bool { return v.present })
}

// sorted returns the rows, the most CPU time first, then the most time off the CPU.
func (t *table) sorted() []*row {
	rows := make([]*row, 0, len(t.rows))
	for _, r := range t.rows {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.cpuNs, a.cpuNs), cmp.Compare(b.offCPUNs, a.offCPUNs), slices.CompareFunc(a.values, b.values, compareValues))
	})
	return rows
}

func compareValues(a, b value) int {
	return cmp.Compare(a.text, b.text)
}

// functionTime is a function with its time, in whatever files it is.
type functionTime struct {
	name  string
	file  string // one of them
	files int
	ns    int64
}

// hottest returns functions, the most time first. What several executables call by one
// name is one function; addresses are of their file.
func hottest(times map[functionKey]int64) []functionTime {
	type identity struct{ name, file string }
	merged := map[identity]*functionTime{}
	for key, ns := range times {
		id := identity{name: key.name}
		if !key.named {
			id.file = key.file
		}
		f := merged[id]
		if f == nil {
			f = &functionTime{name: key.name, file: key.file}
			merged[id] = f
		}
		f.file = min(f.file, key.file)
		f.files++
		f.ns = plus(f.ns, ns)
	}
	functions := make([]functionTime, 0, len(merged))
	for _, f := range merged {
		functions = append(functions, *f)
	}
	slices.SortFunc(functions, func(a, b functionTime) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.name, b.name), cmp.Compare(a.file, b.file))
	})
	return functions
}
