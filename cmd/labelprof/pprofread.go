// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// maxPprofFileBytes bounds a pprof file, unpacked.
const maxPprofFileBytes = 256 << 20

// errNoTime says that a pprof file is of something else.
var errNoTime = errors.New("it has neither CPU time nor off-CPU time")

// readPprof reads a gzipped pprof file; nil: the file is not gzipped, so it is none.
func readPprof(path string) (*profile.Profile, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	if magic, _ := r.Peek(2); string(magic) != "\x1f\x8b" {
		return nil, nil
	}
	p, err := parsePprof(r)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return p, nil
}

func parsePprof(r io.Reader) (*profile.Profile, error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(unpacked, maxPprofFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxPprofFileBytes {
		return nil, fmt.Errorf("more than %d bytes", maxPprofFileBytes)
	}
	p, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	if err := p.CheckValid(); err != nil {
		return nil, err
	}
	if _, _, ok := pprofUnit(p); !ok {
		return nil, errNoTime
	}
	return p, nil
}

// pprofUnit returns which of the values are time, and how.
func pprofUnit(p *profile.Profile) (index int, u unit, ok bool) {
	period := int64(0)
	if t := p.PeriodType; t != nil && t.Type == "cpu" && t.Unit == "nanoseconds" && p.Period > 0 && p.Period <= maxSampleNs {
		period = p.Period
	}
	for _, want := range []struct {
		kind, name string
		unit       unit
		ok         bool
	}{
		{"cpu", "nanoseconds", unit{kind: samplestore.OnCPU, periodNs: period}, true},
		{"samples", "count", unit{kind: samplestore.OnCPU, periodNs: period, count: true}, period > 0},
		{"off_cpu", "nanoseconds", unit{kind: samplestore.OffCPU}, true},
	} {
		for i, t := range p.SampleType {
			if want.ok && t.Type == want.kind && t.Unit == want.name {
				return i, want.unit, true
			}
		}
	}
	return 0, unit{}, false
}

// walkPprof hands over every sample of a pprof profile, all at its one time.
func walkPprof(p *profile.Profile, visit func(*sample)) batch {
	b := batch{startNs: uint64(max(p.TimeNanos, 0)), endNs: uint64(max(p.TimeNanos, 0) + max(p.DurationNanos, 0))}
	index, u, ok := pprofUnit(p)
	if !ok {
		b.otherProfiles++
		return b
	}
	locations := make(map[*profile.Location]*location, len(p.Location))
	for _, l := range p.Location {
		locations[l] = fromPprof(l)
	}
	noProcess := &process{}
	var s sample
	for _, entry := range p.Sample {
		s = sample{kind: u.kind, periodNs: u.periodNs, process: noProcess, points: s.points[:0], stack: s.stack[:0], attributes: s.attributes[:0]}
		for _, l := range entry.Location {
			s.stack = append(s.stack, locations[l])
		}
		for _, key := range slices.Sorted(maps.Keys(entry.Label)) {
			if values := entry.Label[key]; len(values) > 0 {
				s.attributes = append(s.attributes, attribute{key: cut(key), text: cut(values[0])})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(entry.NumLabel)) {
			if values := entry.NumLabel[key]; len(values) > 0 {
				s.attributes = append(s.attributes, attribute{key: cut(key), text: strconv.FormatInt(values[0], 10), number: values[0], isNumber: true})
			}
		}
		if !s.point(b.startNs, entry.Value[index], u) {
			b.malformed++
			continue
		}
		b.samples++
		visit(&s)
	}
	return b
}

func fromPprof(l *profile.Location) *location {
	made := &location{Address: l.Address}
	if m := l.Mapping; m != nil {
		made.Mapping = mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: cut(m.File), BuildID: cut(m.BuildID)}
	}
	for _, entry := range l.Line {
		if f := entry.Function; f != nil {
			made.Lines = append(made.Lines, line{
				Function: function{Name: cut(f.Name), File: cut(f.Filename), StartLine: f.StartLine}, Line: entry.Line,
			})
		}
	}
	return made
}
