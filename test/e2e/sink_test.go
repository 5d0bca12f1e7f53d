//go:build linux && (amd64 || arm64)

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
)

// A hit is one timestamp of one sample, with all that was said about it.
type hit struct {
	timeUnixNano uint64
	offCPU       time.Duration // of an off-CPU profile
	pid          int64
	executable   string
	resource     map[string]string // shared by the hits of a process
	attrs        map[string]string // shared by the hits of a sample
	link         link
	functions    []string // leaf first
}

type link struct {
	traceID [16]byte
	spanID  [8]byte
}

// A flatBatch is what one call of ConsumeProfiles brought.
type flatBatch struct {
	start, end uint64 // Unix ns
	period     int64  // ns between two hits of a CPU
	isOffCPU   bool   // the profiles are off-CPU profiles
	hits       []hit
}

// A sink is the next consumer. It checks the conformance of all that it gets.
type sink struct {
	t      testing.TB
	visit  func(flatBatch) // called in order; nil: none
	refuse func() error    // nil: accepts everything

	mu      sync.Mutex
	batches int
	hits    int
}

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (s *sink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	if s.refuse != nil {
		if err := s.refuse(); err != nil {
			return err
		}
	}
	checkConformance(s.t, p)
	b, err := flatten(p)
	assert.NoError(s.t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	s.hits += len(b.hits)
	if s.visit != nil {
		s.visit(b)
	}
	return nil
}

// checkConformance reports the first rules that profiles break.
func checkConformance(t testing.TB, p pprofile.Profiles) {
	for i, err := range conformance.Check(p) {
		if i == 10 {
			break
		}
		assert.NoError(t, err, "conformance")
	}
}

func (s *sink) received() (batches, hits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batches, s.hits
}

func (s *sink) hasHits() bool {
	_, hits := s.received()
	return hits > 0
}

// flatten lists the hits of all profiles, in the order of time. The profiles of one batch end at the same time, and begin at nearly the same.
func flatten(p pprofile.Profiles) (flatBatch, error) {
	var b flatBatch
	dict := p.Dictionary()
	for _, rp := range p.ResourceProfiles().All() {
		res := rp.Resource().Attributes()
		pid, _ := res.Get("process.pid")
		name, _ := res.Get("process.executable.name")
		resource := map[string]string{}
		for key, value := range res.All() {
			resource[key] = text(value)
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, prof := range sp.Profiles().All() {
				b.start = uint64(prof.Time())
				b.end = b.start + prof.DurationNano()
				b.period = prof.Period()
				b.isOffCPU = dict.StringTable().At(int(prof.SampleType().TypeStrindex())) == "off_cpu"
				for _, sample := range prof.Samples().All() {
					h := hit{pid: pid.Int(), executable: name.Str(), resource: resource, attrs: map[string]string{}}
					for _, i := range sample.AttributeIndices().All() {
						kv := dict.AttributeTable().At(int(i))
						h.attrs[dict.StringTable().At(int(kv.KeyStrindex()))] = text(kv.Value())
					}
					if i := sample.LinkIndex(); i != 0 {
						l := dict.LinkTable().At(int(i))
						h.link = link{l.TraceID(), l.SpanID()}
					}
					h.functions = functions(dict, sample.StackIndex())
					times := sample.TimestampsUnixNano()
					if times.Len() == 0 {
						return b, errors.New("a sample without timestamps")
					}
					for i, t := range times.All() {
						h.timeUnixNano = t
						if b.isOffCPU {
							h.offCPU = time.Duration(sample.Values().At(i))
						}
						b.hits = append(b.hits, h)
					}
				}
			}
		}
	}
	slices.SortStableFunc(b.hits, func(x, y hit) int { return cmp.Compare(x.timeUnixNano, y.timeUnixNano) })
	return b, nil
}

func text(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeBytes {
		return string(v.Bytes().AsRaw())
	}
	return v.AsString()
}

func functions(dict pprofile.ProfilesDictionary, stack int32) []string {
	var names []string
	for _, i := range dict.StackTable().At(int(stack)).LocationIndices().All() {
		loc := dict.LocationTable().At(int(i))
		name := fmt.Sprintf("%#x", loc.Address())
		for _, line := range loc.Lines().All() {
			name = dict.StringTable().At(int(dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
		}
		names = append(names, name)
	}
	return names
}
