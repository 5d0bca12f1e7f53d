// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

const (
	// maxPprofBytes bounds a profile in memory, by estimate.
	maxPprofBytes = 256 << 20
	// A sample, location, function or mapping without its strings.
	entryBytes = 128
)

// pprofProfile gathers samples into one pprof profile. Labels keep their keys but for
// the prefix, so that a tag is called what the program called it.
type pprofProfile struct {
	maxBytes int
	bytes    int
	dropped  int64 // samples that found no room
	lost     int64 // labels whose key was taken already

	profile   profile.Profile
	samples   map[string]*profile.Sample
	locations map[string]*profile.Location
	functions map[function]*profile.Function
	mappings  map[mapping]*profile.Mapping
}

func newPprofProfile(maxBytes int) *pprofProfile {
	return &pprofProfile{
		maxBytes:  maxBytes,
		samples:   map[string]*profile.Sample{},
		locations: map[string]*profile.Location{},
		functions: map[function]*profile.Function{},
		mappings:  map[mapping]*profile.Mapping{},
		profile: profile.Profile{
			SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
			DefaultSampleType: "cpu",
			PeriodType:        &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		},
	}
}

// offCPU makes it a profile of off-CPU time alone.
func (p *pprofProfile) offCPU() {
	p.profile.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "off_cpu", Unit: "nanoseconds"}}
	p.profile.DefaultSampleType, p.profile.PeriodType = "off_cpu", nil
}

func (p *pprofProfile) add(s *sample) {
	if p.bytes > p.maxBytes {
		p.dropped += s.hits
		return
	}
	at := 0 // of its values
	if s.offCPU() {
		p.addOffCPUTypes()
		at = 2
	}
	if p.profile.Period == 0 {
		p.profile.Period = s.periodNs
	}
	tags, lost := tagsOf(s)
	p.lost += int64(lost)
	stack := make([]*profile.Location, len(s.stack))
	key := make([]byte, 0, 256)
	for i, l := range s.stack {
		stack[i] = p.location(l)
		key = binary.AppendUvarint(key, stack[i].ID)
	}
	key = append(key, 0) // no location has this id
	for _, tag := range tags {
		key = appendTag(key, tag)
	}
	entry, ok := p.samples[string(key)]
	if !ok {
		entry = &profile.Sample{Location: stack, Value: make([]int64, len(p.profile.SampleType))}
		setTags(entry, tags)
		p.samples[string(key)] = entry
		p.profile.Sample = append(p.profile.Sample, entry)
		p.bytes += 2*len(key) + entryBytes*(1+len(tags)) + 8*len(stack)
	}
	entry.Value[at] += s.hits
	entry.Value[at+1] = plus(entry.Value[at+1], s.cpuNs)
}

// addOffCPUTypes gives all samples values for time off the CPU, once there is any.
func (p *pprofProfile) addOffCPUTypes() {
	if len(p.profile.SampleType) > 2 {
		return
	}
	p.profile.SampleType = append(p.profile.SampleType,
		&profile.ValueType{Type: "absences", Unit: "count"}, &profile.ValueType{Type: "off_cpu", Unit: "nanoseconds"})
	for _, entry := range p.profile.Sample {
		entry.Value = append(entry.Value, 0, 0)
	}
}

// span widens the time that the profile covers.
func (p *pprofProfile) span(startNs, endNs uint64) {
	start, end := int64(startNs), int64(endNs)
	if start <= 0 || end < start {
		return
	}
	last := max(end, p.profile.TimeNanos+p.profile.DurationNanos)
	if p.profile.TimeNanos == 0 || start < p.profile.TimeNanos {
		p.profile.TimeNanos = start
	}
	p.profile.DurationNanos = last - p.profile.TimeNanos
}

// tagsOf returns what becomes tags, sorted by key, keys unique, and how many labels
// gave way to another with the same key.
func tagsOf(s *sample) (tags []attribute, lost int) {
	taken := map[string]bool{}
	put := func(a attribute, keys ...string) {
		for _, key := range keys {
			if key != "" && !taken[key] {
				taken[key] = true
				a.key, a.text = validUTF8(key), validUTF8(a.text)
				tags = append(tags, a)
				return
			}
		}
		lost++
	}
	if s.process.pid != 0 {
		put(attribute{number: s.process.pid, isNumber: true}, keyPID)
	}
	if s.process.name != "" {
		put(attribute{text: s.process.name}, keyProcessName)
	}
	if s.traceID != "" {
		put(attribute{text: s.traceID}, keyTraceID)
	}
	if s.spanID != "" {
		put(attribute{text: s.spanID}, keySpanID)
	}
	for _, a := range s.attributes {
		if a.key == keyTraceID && a.text == s.traceID || a.key == keySpanID && a.text == s.spanID {
			continue // from the link already
		}
		put(a, strings.TrimPrefix(a.key, labelPrefix), a.key)
	}
	slices.SortFunc(tags, func(a, b attribute) int { return cmp.Compare(a.key, b.key) })
	return tags, lost
}

func setTags(entry *profile.Sample, tags []attribute) {
	for _, tag := range tags {
		if tag.isNumber {
			if entry.NumLabel == nil {
				entry.NumLabel = map[string][]int64{}
			}
			entry.NumLabel[tag.key] = []int64{tag.number}
			continue
		}
		if entry.Label == nil {
			entry.Label = map[string][]string{}
		}
		entry.Label[tag.key] = []string{tag.text}
	}
}

func (p *pprofProfile) location(l *location) *profile.Location {
	m := p.mapping(l.Mapping)
	var mappingID uint64 // none
	if m != nil {
		mappingID = m.ID
	}
	key := binary.AppendUvarint(binary.AppendUvarint(nil, l.Address), mappingID)
	lines := make([]profile.Line, 0, len(l.Lines))
	for _, entry := range l.Lines {
		f := p.function(entry.Function)
		lines = append(lines, profile.Line{Function: f, Line: entry.Line})
		key = binary.AppendVarint(binary.AppendUvarint(key, f.ID), entry.Line)
	}
	if known, ok := p.locations[string(key)]; ok {
		return known
	}
	made := &profile.Location{ID: uint64(len(p.locations) + 1), Mapping: m, Address: l.Address, Line: lines}
	if m != nil {
		describe(m, lines)
	}
	p.locations[string(key)] = made
	p.profile.Location = append(p.profile.Location, made)
	p.bytes += entryBytes + 2*len(key)
	return made
}

// describe notes what is known of code in a mapping.
func describe(m *profile.Mapping, lines []profile.Line) {
	m.HasInlineFrames = m.HasInlineFrames || len(lines) > 1
	for _, l := range lines {
		m.HasFilenames = m.HasFilenames || l.Function.Filename != ""
		m.HasLineNumbers = m.HasLineNumbers || l.Line != 0
	}
}

func (p *pprofProfile) function(f function) *profile.Function {
	if known, ok := p.functions[f]; ok {
		return known
	}
	made := &profile.Function{
		ID: uint64(len(p.functions) + 1), Name: validUTF8(f.Name), Filename: validUTF8(f.File), StartLine: f.StartLine,
	}
	made.SystemName = made.Name
	p.functions[f] = made
	p.profile.Function = append(p.profile.Function, made)
	p.bytes += entryBytes + len(f.Name) + len(f.File)
	return made
}

func (p *pprofProfile) mapping(m mapping) *profile.Mapping {
	if m == (mapping{}) {
		return nil
	}
	if known, ok := p.mappings[m]; ok {
		return known
	}
	made := &profile.Mapping{
		ID: uint64(len(p.mappings) + 1), Start: m.Start, Limit: m.Limit, Offset: m.Offset,
		File: validUTF8(m.File), BuildID: validUTF8(m.BuildID),
		// Functions are what they are: pprof shall not look for symbols by itself.
		HasFunctions: true,
	}
	p.mappings[m] = made
	p.profile.Mapping = append(p.profile.Mapping, made)
	p.bytes += entryBytes + len(m.File) + len(m.BuildID)
	return made
}

func appendTag(b []byte, tag attribute) []byte {
	b = appendText(b, tag.key)
	if tag.isNumber {
		return binary.AppendVarint(append(b, 1), tag.number)
	}
	return appendText(append(b, 0), tag.text)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// writeFile writes the profile, gzipped, in place of a file of this name.
func (p *pprofProfile) writeFile(name string) error {
	return replaceFile(name, p.profile.Write)
}
