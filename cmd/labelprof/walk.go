// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// maxSampleNs bounds what a single sample may claim, two weeks of CPU time, so that
// no sum that matters can overflow.
const maxSampleNs = 1 << 50

// batch is what walk found besides samples.
type batch struct {
	samples       int64 // handed over
	malformed     int64 // samples with an index out of range or an impossible value
	otherProfiles int64 // profiles of something else than CPU time
	startNs       uint64
	endNs         uint64
}

// walk hands over every on-CPU sample of a batch. The batch must not have been
// marshalled: that turns resource attributes into references.
func walk(profiles pprofile.Profiles, visit func(*sample)) batch {
	var b batch
	dict := newDictionary(profiles.Dictionary())
	for _, rp := range profiles.ResourceProfiles().All() {
		proc := newProcess(rp.Resource())
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				b.walkProfile(dict, proc, p, visit)
			}
		}
	}
	return b
}

func newProcess(resource pcommon.Resource) *process {
	p := &process{}
	for key, value := range resource.Attributes().All() {
		a := newAttribute(key, value)
		p.attributes = append(p.attributes, a)
		switch {
		case a.key == keyPID && a.isNumber:
			p.pid = a.number
		case a.key == keyProcessName:
			p.name = a.text
		}
	}
	return p
}

func (b *batch) walkProfile(dict *dictionary, proc *process, p pprofile.Profile, visit func(*sample)) {
	count, ok := unitOf(dict, p)
	if !ok {
		b.otherProfiles++
		return
	}
	start := uint64(p.Time())
	if b.startNs == 0 || start < b.startNs {
		b.startNs = start
	}
	b.endNs = max(b.endNs, start+p.DurationNano())
	var s sample
	for _, entry := range p.Samples().All() {
		s = sample{process: proc, periodNs: p.Period(), stack: s.stack[:0], attributes: s.attributes[:0]}
		if !s.fill(dict, entry) || !s.weigh(entry, p.Period(), count) {
			b.malformed++
			continue
		}
		b.samples++
		visit(&s)
	}
}

// unitOf tells the two ways to report CPU samples apart: as a count, or as time.
func unitOf(dict *dictionary, p pprofile.Profile) (count, ok bool) {
	kind, _ := dict.text(p.SampleType().TypeStrindex())
	unit, _ := dict.text(p.SampleType().UnitStrindex())
	periodKind, _ := dict.text(p.PeriodType().TypeStrindex())
	periodUnit, _ := dict.text(p.PeriodType().UnitStrindex())
	switch {
	case p.Period() <= 0 || p.Period() > maxSampleNs || periodKind != "cpu" || periodUnit != "nanoseconds":
		return false, false
	case kind == "samples" && unit == "count":
		return true, true
	default:
		return false, kind == "cpu" && unit == "nanoseconds"
	}
}

// fill looks up everything that a sample refers to.
func (s *sample) fill(dict *dictionary, entry pprofile.Sample) bool {
	stacks := dict.StackTable()
	if i := entry.StackIndex(); i < 0 || int(i) >= stacks.Len() {
		return false
	}
	for _, i := range stacks.At(int(entry.StackIndex())).LocationIndices().All() {
		l, ok := dict.location(i)
		if !ok {
			return false
		}
		s.stack = append(s.stack, l)
	}
	for _, i := range entry.AttributeIndices().All() {
		a, ok := dict.attribute(i)
		if !ok {
			return false
		}
		s.attributes = append(s.attributes, *a)
	}
	var ok bool
	s.traceID, s.spanID, ok = dict.link(entry.LinkIndex())
	return ok
}

// weigh sums up what a sample counts: its values, or one for each timestamp.
func (s *sample) weigh(entry pprofile.Sample, periodNs int64, count bool) bool {
	sum := int64(entry.TimestampsUnixNano().Len())
	if entry.Values().Len() > 0 {
		sum = 0
		for _, v := range entry.Values().All() {
			if v < 0 || v > maxSampleNs || sum > maxSampleNs {
				return false
			}
			sum += v
		}
	} else if !count {
		sum *= periodNs
	}
	if count {
		if sum > maxSampleNs/periodNs {
			return false
		}
		s.hits, s.cpuNs = sum, sum*periodNs
		return true
	}
	s.hits, s.cpuNs = sum/periodNs, sum
	return sum <= maxSampleNs
}
