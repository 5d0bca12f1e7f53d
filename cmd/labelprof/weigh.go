// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/samplestore"
)

// maxSampleNs bounds what a single sample may claim, two weeks of time, so that
// no sum that matters can overflow.
const maxSampleNs = 1 << 50

// plus adds up times and stays at the largest one.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// unit is what the values of a profile count.
type unit struct {
	kind     samplestore.Kind
	count    bool  // hits, of periodNs each; otherwise nanoseconds
	periodNs int64 // 0: none, a value is one hit
}

// unitOf tells the ways to report samples apart: CPU as a count or as time, off-CPU as time.
func unitOf(dict *dictionary, p pprofile.Profile) (unit, bool) {
	kind, _ := dict.text(p.SampleType().TypeStrindex())
	name, _ := dict.text(p.SampleType().UnitStrindex())
	if kind == "off_cpu" && name == "nanoseconds" {
		return unit{kind: samplestore.OffCPU}, true
	}
	periodKind, _ := dict.text(p.PeriodType().TypeStrindex())
	periodUnit, _ := dict.text(p.PeriodType().UnitStrindex())
	u := unit{kind: samplestore.OnCPU, periodNs: p.Period()}
	switch {
	case p.Period() <= 0 || p.Period() > maxSampleNs || periodKind != "cpu" || periodUnit != "nanoseconds":
		return unit{}, false
	case kind == "samples" && name == "count":
		u.count = true
		return u, true
	default:
		return u, kind == "cpu" && name == "nanoseconds"
	}
}

// of returns the hits and the time of a value.
func (u unit) of(value int64) (hits, ns int64, ok bool) {
	switch {
	case value < 0 || value > maxSampleNs:
		return 0, 0, false
	case u.count:
		return value, value * u.periodNs, value <= maxSampleNs/u.periodNs
	case u.periodNs > 0:
		return value / u.periodNs, value, true
	default:
		return 1, value, true
	}
}

// weigh sums up what a sample counts: its values, or one for each timestamp. A value
// has the time of its timestamp, or else that of the profile.
func (s *sample) weigh(entry pprofile.Sample, startNs uint64, u unit) bool {
	values, times := entry.Values(), entry.TimestampsUnixNano()
	if values.Len() > 0 {
		for i, value := range values.All() {
			at := startNs
			if values.Len() == times.Len() {
				at = times.At(i)
			}
			if !s.point(at, value, u) {
				return false
			}
		}
		return true
	}
	if u.kind == samplestore.OffCPU {
		return times.Len() == 0 // the time of a return says nothing of how long
	}
	one := int64(1)
	if !u.count {
		one = u.periodNs
	}
	for _, at := range times.All() {
		if !s.point(at, one, u) {
			return false
		}
	}
	return true
}

// point adds a value.
func (s *sample) point(timeNs uint64, value int64, u unit) bool {
	hits, ns, ok := u.of(value)
	if !ok || s.cpuNs+ns > maxSampleNs {
		return false
	}
	s.hits += hits
	s.cpuNs += ns
	s.points = append(s.points, samplestore.Point{TimeNs: int64(min(timeNs, math.MaxInt64)), Hits: hits, Ns: ns})
	return true
}
