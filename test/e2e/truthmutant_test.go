//go:build linux && (amd64 || arm64)

package e2e

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A truthMutant changes what a receiver has handed over into what a receiver with a
// defect would have.
type truthMutant struct {
	name string
	// mutate changes the samples of a batch, which are in the order of time, and returns how
	// many of them have other labels than before.
	mutate func([]mutableSample) int
}

// mutableSample is one timestamp of one sample of a writer.
type mutableSample struct {
	pprofile.Sample

	dict pprofile.ProfilesDictionary
	pid  int64
	tid  uint32
	abi  string
}

func (m *mutableSample) timeUnixNano() uint64 { return m.TimestampsUnixNano().At(0) }

// labelsOf is the labels and the link of a sample.
type labelsOf struct {
	attributes []int32
	link       int32
}

func (l labelsOf) none() bool { return l.link == 0 && len(l.attributes) == 0 }

func (l labelsOf) equal(other labelsOf) bool {
	return l.link == other.link && slices.Equal(l.attributes, other.attributes)
}

// proves reports whether an attribute is one that proves a set.
func (m *mutableSample) proves(attribute int32) bool {
	key := truthKeyOf(m.dict.StringTable().At(int(m.dict.AttributeTable().At(int(attribute)).KeyStrindex())))
	return key != keyNone && key != keyThread
}

func (m *mutableSample) labels() labelsOf {
	return labelsOf{slices.DeleteFunc(m.AttributeIndices().AsRaw(), func(i int32) bool { return !m.proves(i) }), m.LinkIndex()}
}

func (m *mutableSample) setLabels(l labelsOf) {
	others := slices.DeleteFunc(m.AttributeIndices().AsRaw(), m.proves)
	m.AttributeIndices().FromRaw(append(others, l.attributes...))
	m.SetLinkIndex(l.link)
}

// truthMutants are defects of each kind that a judge must notice.
func truthMutants() []truthMutant {
	before := func(i, j mutableSample) bool { return i.pid == j.pid && i.tid == j.tid }
	return []truthMutant{
		{"the set of the thread's sample before", func(s []mutableSample) int { return giveEarlier(s, 1, before) }},
		{"the same, of one sample in ten", func(s []mutableSample) int { return giveEarlier(s, 10, before) }},
		{"the set of the thread's sample after", func(s []mutableSample) int {
			slices.Reverse(s)
			return giveEarlier(s, 1, before)
		}},
		{"the set of another thread", func(s []mutableSample) int {
			return giveEarlier(s, 1, func(i, j mutableSample) bool { return i.pid == j.pid && i.tid != j.tid })
		}},
		{"the set of another process", func(s []mutableSample) int {
			return giveEarlier(s, 1, func(i, j mutableSample) bool { return i.pid != j.pid && i.abi == j.abi })
		}},
		{"one label of the thread's sample before", mixLabels},
		{"no labels, of one sample in ten", loseLabels},
	}
}

// giveEarlier gives one sample in so many the labels of the one next before it that is
// related to it.
func giveEarlier(samples []mutableSample, oneIn int, related func(i, j mutableSample) bool) (changed int) {
	was := labelsOfAll(samples)
	for i := range samples {
		if i%oneIn != 0 {
			continue
		}
		for j := i - 1; j >= 0; j-- {
			if was[j].none() || !related(samples[i], samples[j]) {
				continue
			}
			if !was[i].none() && !was[i].equal(was[j]) {
				samples[i].setLabels(was[j])
				changed++
			}
			break
		}
	}
	return changed
}

// mixLabels gives samples the last label of the thread's sample before.
func mixLabels(samples []mutableSample) (changed int) {
	latest := map[uint32]labelsOf{}
	for i := range samples {
		s := &samples[i]
		now := s.labels()
		was, ok := latest[s.tid]
		latest[s.tid] = now
		end := len(now.attributes) - 1
		if ok && len(was.attributes) == end+1 && end >= 0 && was.attributes[end] != now.attributes[end] {
			s.setLabels(labelsOf{append(slices.Clone(now.attributes[:end]), was.attributes[end]), now.link})
			changed++
		}
	}
	return changed
}

func loseLabels(samples []mutableSample) (changed int) {
	for i := range samples {
		if i%10 == 0 && !samples[i].labels().none() {
			samples[i].setLabels(labelsOf{})
			changed++
		}
	}
	return changed
}

func labelsOfAll(samples []mutableSample) []labelsOf {
	all := make([]labelsOf, len(samples))
	for i := range samples {
		all[i] = samples[i].labels()
	}
	return all
}

// apply mutates a copy of a batch.
func (m *truthMutant) apply(p pprofile.Profiles, writers map[int64]*truthWriter) (mutated pprofile.Profiles, changed int) {
	mutated = pprofile.NewProfiles()
	p.CopyTo(mutated)
	var samples []mutableSample
	var reader truthReader
	reader.begin(mutated.Dictionary())
	for _, rp := range mutated.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		w := writers[pid.Int()]
		if w == nil {
			continue
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, prof := range sp.Profiles().All() {
				splitTimes(prof)
				for _, sample := range prof.Samples().All() {
					reader.read(mutated.Dictionary(), sample)
					abi, _, _ := strings.Cut(w.name, "-")
					samples = append(samples, mutableSample{sample, mutated.Dictionary(), pid.Int(), reader.sample.tid, abi})
				}
			}
		}
	}
	slices.SortFunc(samples, func(a, b mutableSample) int { return cmp.Compare(a.timeUnixNano(), b.timeUnixNano()) })
	return mutated, m.mutate(samples)
}

// splitTimes makes a sample of its own of each timestamp.
func splitTimes(prof pprofile.Profile) {
	all := prof.Samples()
	for i := range all.Len() {
		times := all.At(i).TimestampsUnixNano().AsRaw()
		for _, t := range times[1:] {
			one := all.AppendEmpty()
			all.At(i).CopyTo(one)
			one.TimestampsUnixNano().FromRaw([]uint64{t})
		}
		all.At(i).TimestampsUnixNano().FromRaw(times[:1])
	}
}
