// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"encoding/binary"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/terminal"
)

// location returns a location of the profile, which has each once: by address, mapping and lines.
func (p *Builder) location(l *sample.Location) *profile.Location {
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
		// Functions are what they are: pprof shall not look for others. Where there are none, it may.
		m.HasFunctions = true
		m.HasFilenames = m.HasFilenames || l.Function.Filename != ""
		m.HasLineNumbers = m.HasLineNumbers || l.Line != 0
	}
}

func (p *Builder) function(f sample.Function) *profile.Function {
	if known, ok := p.functions[f]; ok {
		return known
	}
	made := &profile.Function{
		ID: uint64(len(p.functions) + 1), Name: terminal.ValidUTF8(f.Name), Filename: terminal.ValidUTF8(f.File), StartLine: f.StartLine,
	}
	made.SystemName = made.Name
	p.functions[f] = made
	p.profile.Function = append(p.profile.Function, made)
	p.bytes += entryBytes + len(f.Name) + len(f.File)
	return made
}

func (p *Builder) mapping(m sample.Mapping) *profile.Mapping {
	if m == (sample.Mapping{}) {
		return nil
	}
	if known, ok := p.mappings[m]; ok {
		return known
	}
	made := &profile.Mapping{
		ID: uint64(len(p.mappings) + 1), Start: m.Start, Limit: m.Limit, Offset: m.Offset,
		File: terminal.ValidUTF8(m.File), BuildID: terminal.ValidUTF8(m.BuildID),
	}
	p.mappings[m] = made
	p.profile.Mapping = append(p.profile.Mapping, made)
	p.bytes += entryBytes + len(m.File) + len(m.BuildID)
	return made
}
