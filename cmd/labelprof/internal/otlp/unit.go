// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"math"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

const (
	keyThreshold = "custom_labels.off_cpu.threshold"
	// minThreshold is the least that the receiver can have.
	minThreshold = 1e-6
)

// unit is what the values of a profile count, and how far they were counted.
type unit struct {
	kind      sample.Kind
	count     bool    // hits, of periodNs each; otherwise nanoseconds
	periodNs  int64   // 0 off the CPU
	threshold float64 // the part of all absences that values stand for
	told      int64   // absences of that threshold that had a value
	cut       int64   // absences whose time was cut
}

// unitOf tells the ways to report samples apart: CPU as a count or as time, off-CPU as time.
func unitOf(dict *dictionary, p pprofile.Profile) (unit, bool) {
	kind, _ := dict.text(p.SampleType().TypeStrindex())
	name, _ := dict.text(p.SampleType().UnitStrindex())
	if kind == "off_cpu" && name == "nanoseconds" {
		return unit{kind: sample.OffCPU, threshold: thresholdOf(dict, p)}, true
	}
	periodKind, _ := dict.text(p.PeriodType().TypeStrindex())
	periodUnit, _ := dict.text(p.PeriodType().UnitStrindex())
	u := unit{kind: sample.OnCPU, periodNs: p.Period()}
	switch {
	case p.Period() <= 0 || p.Period() > sample.MaxNs || periodKind != "cpu" || periodUnit != "nanoseconds":
		return unit{}, false
	case kind == "samples" && name == "count":
		u.count = true
		return u, true
	default:
		return u, kind == "cpu" && name == "nanoseconds"
	}
}

// thresholdOf returns the part of all absences that an off-CPU profile has; all, where it does
// not say.
func thresholdOf(dict *dictionary, p pprofile.Profile) float64 {
	for _, i := range p.AttributeIndices().All() {
		if a, ok := dict.attribute(i); !ok || a.Key != keyThreshold {
			continue
		}
		if t := dict.AttributeTable().At(int(i)).Value().Double(); t >= minThreshold && t <= 1 {
			return t
		}
	}
	return 1
}

// absences is how many absences the next value stands for: those of n values are n/threshold,
// rounded.
func (u *unit) absences() int64 {
	upTo := func(values int64) int64 { return int64(math.Round(float64(values) / u.threshold)) }
	u.told++
	return upTo(u.told) - upTo(u.told-1)
}

// of returns the hits and the time of a value.
func (u *unit) of(value int64) (hits, ns int64, ok bool) {
	switch {
	case value < 0:
		return 0, 0, false
	case u.kind == sample.OffCPU:
		return u.absences(), value, true
	case u.count:
		return value, value * u.periodNs, value <= sample.MaxNs/u.periodNs
	default: // a part of a period is a hit, too
		return max(value/u.periodNs, min(value, 1)), value, true
	}
}

// weigh sums up what a sample counts: its values, or one for each timestamp. A value
// has the time of its timestamp, or else that of the profile.
func (u *unit) weigh(s *sample.Sample, entry pprofile.Sample, startNs uint64) bool {
	values, times := entry.Values(), entry.TimestampsUnixNano()
	reserve(s, points(entry))
	if values.Len() > 0 {
		for i, value := range values.All() {
			at := startNs
			if values.Len() == times.Len() {
				at = times.At(i)
			}
			if !u.add(s, at, value) {
				return false
			}
		}
		return true
	}
	if u.kind == sample.OffCPU {
		return times.Len() == 0 // the time of a return says nothing of how long
	}
	one := int64(1)
	if !u.count {
		one = u.periodNs
	}
	for _, at := range times.All() {
		if !u.add(s, at, one) {
			return false
		}
	}
	return true
}

// pointsBytes is the most that Walk takes for the points of a sample of these profiles.
func pointsBytes(profiles pprofile.Profiles) int64 {
	most := 0
	for _, rp := range profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				for _, entry := range p.Samples().All() {
					most = max(most, points(entry))
				}
			}
		}
	}
	return int64(most) * int64(unsafe.Sizeof(sample.Point{}))
}

// points is how many points a sample has at most.
func points(entry pprofile.Sample) int {
	if n := entry.Values().Len(); n > 0 {
		return n
	}
	return entry.TimestampsUnixNano().Len()
}

// reserve makes room for so many points, no more, and gives up what there was before.
func reserve(s *sample.Sample, n int) {
	if cap(s.Points) < n {
		s.Points = nil
		s.Points = make([]sample.Point, 0, n)
	}
}

// add adds a value to a sample. Time off the CPU is cut to what the sample may still have: where
// few absences stand for all, one of hours can count weeks.
func (u *unit) add(s *sample.Sample, timeNs uint64, value int64) bool {
	hits, ns, ok := u.of(value)
	left := sample.MaxNs - s.Ns
	if u.kind == sample.OffCPU && ns > left {
		ns = left
		u.cut++
	}
	if !ok || ns > left {
		return false
	}
	s.Hits += hits
	s.Ns += ns
	s.Points = append(s.Points, sample.Point{TimeNs: int64(min(timeNs, math.MaxInt64)), Hits: hits, Ns: ns})
	return true
}
