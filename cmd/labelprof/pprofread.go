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

// errNoTime says that a pprof file is of something else.
var errNoTime = errors.New("it has neither CPU time nor off-CPU time")

// readPprof hands over a gzipped pprof file; false: the file is not gzipped, so it is none.
func readPprof(path string, d *decoder, visit func(*profile.Profile)) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	r := bufio.NewReader(file)
	if magic, _ := r.Peek(2); string(magic) != "\x1f\x8b" {
		return false, nil
	}
	if err := unpackPprof(r, d, visit); err != nil {
		return true, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

func unpackPprof(r io.Reader, d *decoder, visit func(*profile.Profile)) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	data, err := readUpTo(unpacked, d.memory.file())
	if err != nil {
		return err
	}
	return d.profile(data, visit)
}

// pprofValues says where the values of a kind are.
type pprofValues struct {
	unit
	time, hits int // indexes; -1: not there
}

// pprofKinds returns the kinds of time that a profile has.
func pprofKinds(p *profile.Profile) []pprofValues {
	index := func(kind, name string) int {
		return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == kind && t.Unit == name })
	}
	period := int64(0)
	if t := p.PeriodType; t != nil && t.Type == "cpu" && t.Unit == "nanoseconds" && p.Period > 0 && p.Period <= maxSampleNs {
		period = p.Period
	}
	var kinds []pprofValues
	on := pprofValues{unit: unit{kind: samplestore.OnCPU, periodNs: period}, time: index("cpu", "nanoseconds"), hits: index("samples", "count")}
	off := pprofValues{unit: unit{kind: samplestore.OffCPU}, time: index("off_cpu", "nanoseconds"), hits: index("absences", "count")}
	if on.time >= 0 || on.hits >= 0 && period > 0 {
		kinds = append(kinds, on)
	}
	if off.time >= 0 {
		if off.hits < 0 && on.time < 0 {
			off.hits = on.hits // the only time that there is
		}
		return append(kinds, off)
	}
	return kinds
}

// point returns what a sample has of a kind.
func (v pprofValues) point(values []int64) (hits, ns int64) {
	if v.hits >= 0 {
		hits = values[v.hits]
	}
	switch {
	case v.time >= 0:
		ns = values[v.time]
	case hits <= maxSampleNs/v.periodNs:
		ns = hits * v.periodNs
	default:
		ns = -1
	}
	if v.hits < 0 {
		hits = 1
		if v.periodNs > 0 {
			hits = ns / v.periodNs
		}
	}
	return hits, ns
}

// walkPprof hands over every sample of a pprof profile, all at its one time.
func walkPprof(p *profile.Profile, visit func(*sample)) batch {
	b := batch{startNs: uint64(max(p.TimeNanos, 0)), endNs: uint64(max(p.TimeNanos, 0) + max(p.DurationNanos, 0))}
	kinds, known := pprofKinds(p), texts{}
	locations := make(map[*profile.Location]*location, len(p.Location))
	for _, l := range p.Location {
		locations[l] = fromPprof(known, l)
	}
	noProcess := &process{}
	work := maxWork
	var s sample
	for _, entry := range p.Sample {
		if len(entry.Location) > maxFrames || len(entry.Label)+len(entry.NumLabel) > maxAttributes || work < 0 {
			b.malformed++
			continue
		}
		s = sample{process: noProcess, points: s.points, stack: s.stack[:0], attributes: s.attributes[:0]}
		for _, l := range entry.Location {
			s.stack = append(s.stack, locations[l])
			work -= 1 + len(l.Line)
		}
		for _, key := range slices.Sorted(maps.Keys(entry.Label)) {
			if values := entry.Label[key]; len(values) > 0 {
				s.attributes = append(s.attributes, attribute{key: known.of(key), text: known.of(values[0])})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(entry.NumLabel)) {
			if values := entry.NumLabel[key]; len(values) > 0 {
				s.attributes = append(s.attributes, attribute{key: known.of(key), text: strconv.FormatInt(values[0], 10), number: values[0], isNumber: true})
			}
		}
		for _, kind := range kinds {
			hits, ns := kind.point(entry.Value)
			switch {
			case hits == 0 && ns == 0: // it is of another kind
			case hits < 0 || ns < 0 || hits > maxSampleNs || ns > maxSampleNs:
				b.malformed++
			default:
				s.kind, s.periodNs, s.hits, s.cpuNs = kind.kind, kind.periodNs, hits, ns
				s.points = append(s.points[:0], samplestore.Point{TimeNs: int64(b.startNs), Hits: hits, Ns: ns})
				b.samples++
				visit(&s)
			}
		}
	}
	return b
}

func fromPprof(known texts, l *profile.Location) *location {
	made := &location{Address: l.Address}
	l.Line = l.Line[:min(len(l.Line), maxLines)]
	if m := l.Mapping; m != nil {
		made.Mapping = mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: known.of(m.File), BuildID: known.of(m.BuildID)}
	}
	for _, entry := range l.Line {
		if f := entry.Function; f != nil {
			made.Lines = append(made.Lines, line{
				Function: function{Name: known.of(f.Name), File: known.of(f.Filename), StartLine: f.StartLine}, Line: entry.Line,
			})
		}
	}
	return made
}
