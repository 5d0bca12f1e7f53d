// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"encoding/binary"
	"fmt"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

const (
	// MaxBytes bounds a profile in memory, by estimate, where nobody asks for more.
	MaxBytes = 256 << 20
	// A sample, location, function or mapping without its strings.
	entryBytes = 128
)

// Builder gathers samples into one pprof profile. Labels keep their keys but for
// the prefix, so that a tag is called what the program called it.
type Builder struct {
	maxBytes int
	bytes    int
	dropped  int64 // samples that found no room
	lost     int64 // labels whose key was taken already, or without a value
	onCPU    bool  // some sample has values of the first types
	names    names

	profile   profile.Profile
	samples   map[string]*profile.Sample
	locations map[string]*profile.Location
	functions map[sample.Function]*profile.Function
	mappings  map[sample.Mapping]*profile.Mapping
}

// New returns a builder of a profile that takes about maxBytes of memory.
func New(maxBytes int) *Builder {
	return &Builder{
		maxBytes:  maxBytes,
		names:     names{of: func(key string) string { return key }},
		samples:   map[string]*profile.Sample{},
		locations: map[string]*profile.Location{},
		functions: map[sample.Function]*profile.Function{},
		mappings:  map[sample.Mapping]*profile.Mapping{},
		profile: profile.Profile{
			SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
			DefaultSampleType: "cpu",
			PeriodType:        &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		},
	}
}

// OffCPU makes it a profile of off-CPU time alone.
func (p *Builder) OffCPU() {
	p.profile.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "off_cpu", Unit: "nanoseconds"}}
	p.profile.DefaultSampleType, p.profile.PeriodType = "off_cpu", nil
}

// names are how tags are named: by a function of their keys, and not so.
type names struct {
	of      func(key string) string
	taken   []string
	noZeros bool
}

// Names has tags named by a function of their keys, where some names are taken already. Numbers that are 0 are left
// out: they would be texts, and a backend may make a series of each text, and of no number.
func (p *Builder) Names(of func(key string) string, taken ...string) {
	p.names = names{of, taken, true}
}

// Add takes in a sample, and counts it if there is no room.
func (p *Builder) Add(s *sample.Sample) {
	if p.bytes > p.maxBytes {
		p.dropped += s.Hits
		return
	}
	at := 0 // of its values
	if s.OffCPU() {
		p.addOffCPUTypes()
		at = 2
	}
	// Of a profile with time off the CPU alone, that is what pprof shows first.
	if p.onCPU = p.onCPU || at == 0; p.onCPU {
		p.profile.DefaultSampleType = p.profile.SampleType[1].Type
	} else {
		p.profile.DefaultSampleType = p.profile.SampleType[3].Type
	}
	if p.profile.Period == 0 {
		p.profile.Period = s.PeriodNs
	}
	tags, lost := p.names.tagsOf(s)
	p.lost += int64(lost)
	stack := make([]*profile.Location, len(s.Stack))
	key := make([]byte, 0, 256)
	for i, l := range s.Stack {
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
	entry.Value[at] = sample.AddNs(entry.Value[at], s.Hits)
	entry.Value[at+1] = sample.AddNs(entry.Value[at+1], s.Ns)
}

// addOffCPUTypes gives all samples values for time off the CPU, once there is any.
func (p *Builder) addOffCPUTypes() {
	if len(p.profile.SampleType) > 2 {
		return
	}
	p.profile.SampleType = append(p.profile.SampleType,
		&profile.ValueType{Type: "absences", Unit: "count"}, &profile.ValueType{Type: "off_cpu", Unit: "nanoseconds"})
	for _, entry := range p.profile.Sample {
		entry.Value = append(entry.Value, 0, 0)
	}
}

// Span widens the time that the profile covers.
func (p *Builder) Span(startNs, endNs uint64) {
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

// WriteFile writes the profile, gzipped, in place of a file of this name. A reader finds all
// of one or all of the other; only its owner may read it. What is no regular file stays, and is
// written to: a device, a pipe, standard output.
func (p *Builder) WriteFile(name string) error {
	return writeFile(name, p.profile.Write)
}

// Empty reports whether no sample is in the profile.
func (p *Builder) Empty() bool { return len(p.samples) == 0 }

// Samples returns how many there are.
func (p *Builder) Samples() int { return len(p.samples) }

// Bytes estimates the memory that the profile takes, in bytes.
func (p *Builder) Bytes() int { return p.bytes }

// Full says how many samples found no room; "": all did.
func (p *Builder) Full() string {
	if p.dropped == 0 {
		return ""
	}
	return fmt.Sprintf("%d samples not in the pprof file: no room (--max-memory allows more)", p.dropped)
}

// Lost returns how many labels gave way to another with the same key, or have no value.
func (p *Builder) Lost() int64 { return p.lost }

// Profile returns what has been gathered. It stays the builder's.
func (p *Builder) Profile() *profile.Profile { return &p.profile }

// Notes are the counters of what was left out, as far as there is any, a sentence each.
func (p *Builder) Notes() []string {
	var notes []string
	if full := p.Full(); full != "" {
		notes = append(notes, full)
	}
	if p.lost > 0 {
		notes = append(notes, fmt.Sprintf("%d labels not in the pprof file: another one has the key, or it has no value", p.lost))
	}
	return notes
}
