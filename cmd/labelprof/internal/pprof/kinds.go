// SPDX-License-Identifier: Apache-2.0

package pprof

import (
	"slices"

	"github.com/google/pprof/profile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// kindValues says where the values of a kind are.
type kindValues struct {
	kind       sample.Kind
	periodNs   int64 // 0: none, a value is one hit
	time, hits int   // indexes; -1: not there
}

// kindsOf returns the kinds of time that a profile has.
func kindsOf(p *profile.Profile) []kindValues {
	index := func(kind, name string) int {
		return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == kind && t.Unit == name })
	}
	period := int64(0)
	if t := p.PeriodType; t != nil && t.Type == "cpu" && t.Unit == "nanoseconds" && p.Period > 0 && p.Period <= sample.MaxNs {
		period = p.Period
	}
	var kinds []kindValues
	on := kindValues{kind: sample.OnCPU, periodNs: period, time: index("cpu", "nanoseconds"), hits: index("samples", "count")}
	off := kindValues{kind: sample.OffCPU, time: index("off_cpu", "nanoseconds"), hits: index("absences", "count")}
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
func (v kindValues) point(values []int64) (hits, ns int64) {
	if v.hits >= 0 {
		hits = values[v.hits]
	}
	switch {
	case v.time >= 0:
		ns = values[v.time]
	case hits <= sample.MaxNs/v.periodNs:
		ns = hits * v.periodNs
	default:
		ns = sample.MaxNs
	}
	if v.hits < 0 && ns != 0 {
		hits = 1
		if v.periodNs > 0 {
			hits = max(ns/v.periodNs, 1) // a part of a period is a hit, too
		}
	}
	return hits, ns
}
