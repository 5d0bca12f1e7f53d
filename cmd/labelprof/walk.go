// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Bounds of what a batch may refer to: a few bytes can name the same thing again and again.
// Samples beyond count as malformed.
const (
	maxFrames     = 4096    // of a sample
	maxLines      = 256     // of a location: functions inlined there
	maxAttributes = 512     // of a sample or resource
	maxWork       = 1 << 26 // frames, lines and attributes of all samples
)

// batch is what walk found besides samples.
type batch struct {
	samples       int64 // handed over
	malformed     int64 // samples with an index out of range or an impossible value
	otherProfiles int64 // profiles of something else than CPU and off-CPU time
	startNs       uint64
	endNs         uint64
}

// walk hands over every on-CPU and off-CPU sample of a batch. The batch must not have been
// marshalled: that turns resource attributes into references.
func walk(profiles pprofile.Profiles, visit func(*sample)) batch {
	var b batch
	dict := newDictionary(profiles.Dictionary())
	for _, rp := range profiles.ResourceProfiles().All() {
		proc := newProcess(dict.texts, rp.Resource())
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				b.walkProfile(dict, proc, p, visit)
			}
		}
	}
	return b
}

func newProcess(known texts, resource pcommon.Resource) *process {
	p := &process{}
	for key, value := range resource.Attributes().All() {
		if len(p.attributes) == maxAttributes {
			break
		}
		a := newAttribute(known, key, value)
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
	u, ok := unitOf(dict, p)
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
		s = sample{
			kind: u.kind, process: proc, periodNs: u.periodNs,
			points: s.points[:0], stack: s.stack[:0], attributes: s.attributes[:0],
		}
		if !s.fill(dict, entry) || !s.weigh(entry, start, u) {
			b.malformed++
			continue
		}
		b.samples++
		visit(&s)
	}
}

// fill looks up everything that a sample refers to.
func (s *sample) fill(dict *dictionary, entry pprofile.Sample) bool {
	stacks := dict.StackTable()
	if i := entry.StackIndex(); i < 0 || int(i) >= stacks.Len() {
		return false
	}
	frames, attributes := stacks.At(int(entry.StackIndex())).LocationIndices(), entry.AttributeIndices()
	if frames.Len() > maxFrames || attributes.Len() > maxAttributes || dict.work < 0 {
		return false
	}
	dict.work -= attributes.Len() + len(s.process.attributes)
	for _, i := range frames.All() {
		l, ok := dict.location(i)
		if !ok {
			return false
		}
		dict.work -= 1 + len(l.Lines)
		s.stack = append(s.stack, l)
	}
	for _, i := range attributes.All() {
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
