// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
)

// Walk hands over every on-CPU and off-CPU sample of a batch. The batch must not have been
// marshalled: that turns resource attributes into references.
func Walk(profiles pprofile.Profiles, visit func(*sample.Sample)) sample.Batch {
	w := walk{visit: visit, told: map[float64]int64{}}
	dict := newDictionary(profiles.Dictionary())
	for _, rp := range profiles.ResourceProfiles().All() {
		proc := newProcess(dict.texts, rp.Resource())
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				w.profile(dict, proc, p)
			}
		}
	}
	return w.Batch
}

// walk is what has been found so far.
type walk struct {
	sample.Batch
	visit func(*sample.Sample)
	told  map[float64]int64 // unit.told by threshold: a process may have few absences
}

func (w *walk) profile(dict *dictionary, proc *sample.Process, p pprofile.Profile) {
	u, ok := unitOf(dict, p)
	if !ok {
		w.OtherProfiles++
		return
	}
	u.told = w.told[u.threshold]
	start := uint64(p.Time())
	if w.StartNs == 0 || start < w.StartNs {
		w.StartNs = start
	}
	w.EndNs = max(w.EndNs, start+p.DurationNano())
	var s sample.Sample
	for _, entry := range p.Samples().All() {
		s = sample.Sample{
			Kind: u.kind, Process: proc, PeriodNs: u.periodNs,
			Points: s.Points[:0], Stack: s.Stack[:0], Attributes: s.Attributes[:0],
		}
		if !fill(&s, dict, entry) || !u.weigh(&s, entry, start) {
			w.Malformed++
			continue
		}
		w.visit(&s)
	}
	w.told[u.threshold] = u.told
	w.Cut += u.cut
}

// fill looks up everything that a sample refers to.
func fill(s *sample.Sample, dict *dictionary, entry pprofile.Sample) bool {
	stacks := dict.StackTable()
	if i := entry.StackIndex(); i < 0 || int(i) >= stacks.Len() {
		return false
	}
	frames, attributes := stacks.At(int(entry.StackIndex())).LocationIndices(), entry.AttributeIndices()
	if frames.Len() > sample.MaxFrames || attributes.Len() > sample.MaxAttributes || dict.work < 0 {
		return false
	}
	dict.work -= attributes.Len() + len(s.Process.Attributes) + points(entry)
	for _, i := range frames.All() {
		l, ok := dict.location(i)
		if !ok {
			return false
		}
		dict.work -= 1 + len(l.Lines)
		s.Stack = append(s.Stack, l)
	}
	for _, i := range attributes.All() {
		a, ok := dict.attribute(i)
		if !ok {
			return false
		}
		s.Attributes = append(s.Attributes, *a)
	}
	var ok bool
	s.TraceID, s.SpanID, ok = dict.link(entry.LinkIndex())
	return ok
}
