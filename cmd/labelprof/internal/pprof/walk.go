// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// Walk hands over every sample of a pprof profile, all at its one time.
func Walk(p *profile.Profile, visit func(*sample.Sample)) sample.Batch {
	b := sample.Batch{StartNs: uint64(max(p.TimeNanos, 0)), EndNs: uint64(max(p.TimeNanos, 0) + max(p.DurationNanos, 0))}
	kinds, known := kindsOf(p), sample.Texts{}
	locations := make(map[*profile.Location]*sample.Location, len(p.Location))
	for _, l := range p.Location {
		locations[l] = fromPprof(known, l)
	}
	noProcess := &sample.Process{}
	work := sample.MaxWork
	var s sample.Sample
	for _, entry := range p.Sample {
		if len(entry.Location) > sample.MaxFrames || len(entry.Label)+len(entry.NumLabel) > sample.MaxAttributes || work < 0 {
			b.Malformed++
			continue
		}
		s = sample.Sample{Process: noProcess, Points: s.Points, Stack: s.Stack[:0], Attributes: s.Attributes[:0]}
		for _, l := range entry.Location {
			s.Stack = append(s.Stack, locations[l])
			work -= 1 + len(l.Line)
		}
		for _, key := range slices.Sorted(maps.Keys(entry.Label)) {
			if values := entry.Label[key]; len(values) > 0 && !setLink(&s, key, values[0]) {
				s.Attributes = append(s.Attributes, sample.Attribute{Key: known.Of(key), Text: known.Of(values[0])})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(entry.NumLabel)) {
			if values := entry.NumLabel[key]; len(values) > 0 {
				s.Attributes = append(s.Attributes, sample.Attribute{Key: known.Of(key), Text: strconv.FormatInt(values[0], 10), Number: values[0], IsNumber: true})
			}
		}
		for _, kind := range kinds {
			hits, ns := kind.point(entry.Value)
			switch {
			case hits == 0 && ns == 0: // it is of another kind
			case hits < 0 || ns < 0:
				b.Malformed++
			default:
				if max(hits, ns) > sample.MaxNs {
					b.Cut++
				}
				hits, ns = min(hits, sample.MaxNs), min(ns, sample.MaxNs) // sums of many samples
				s.Kind, s.PeriodNs, s.Hits, s.Ns = kind.kind, kind.periodNs, hits, ns
				s.Points = append(s.Points[:0], sample.Point{TimeNs: int64(b.StartNs), Hits: hits, Ns: ns})
				visit(&s)
			}
		}
	}
	return b
}

// setLink takes a tag that is a trace or span id as that of the sample.
func setLink(s *sample.Sample, key, value string) bool {
	var id [16]byte
	of, n := &s.TraceID, len(id)
	switch key {
	case sample.KeyTraceID:
	case sample.KeySpanID:
		of, n = &s.SpanID, 8
	default:
		return false
	}
	if len(value) != hex.EncodedLen(n) {
		return false
	}
	if _, err := hex.Decode(id[:], []byte(value)); err != nil || id == [16]byte{} {
		return false
	}
	*of = hex.EncodeToString(id[:n])
	return true
}

func fromPprof(known sample.Texts, l *profile.Location) *sample.Location {
	made := &sample.Location{Address: l.Address}
	l.Line = l.Line[:min(len(l.Line), sample.MaxLines)]
	if m := l.Mapping; m != nil {
		made.Mapping = sample.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, File: known.Of(m.File), BuildID: known.Of(m.BuildID)}
	}
	for _, entry := range l.Line {
		if f := entry.Function; f != nil {
			made.Lines = append(made.Lines, sample.Line{
				Function: sample.Function{Name: known.Of(f.Name), File: known.Of(f.Filename), StartLine: f.StartLine}, Line: entry.Line,
			})
		}
	}
	return made
}
