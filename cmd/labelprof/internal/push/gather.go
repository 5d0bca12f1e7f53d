// SPDX-License-Identifier: Apache-2.0

package push

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	pprofprofile "github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/otlp"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/pprof"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/sample"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

const (
	// partBytes is when a profile goes, by an estimate of memory that is above its size:
	// Pyroscope takes 4 MiB and 16,000 samples (-validation.max-profile-*), unpacked.
	partBytes   = 3 << 20
	partSamples = 15_000
	// gatheredBytes bounds all profiles that are gathered at once.
	gatheredBytes = 64 << 20
	// emptyPartBytes is what a part takes besides its samples, by an estimate.
	emptyPartBytes = 2 << 10
	// partSpan is how far apart batches may begin whose samples are in one profile: Pyroscope shows all of a
	// profile at the time at which it begins.
	partSpan = uint64(15 * time.Second)
	// nameBytes bounds the name of a service.
	nameBytes = 256
	// keyService tells services apart.
	keyService = "service.name"
)

// A part is a profile of one service on its way.
type part struct {
	service    string
	kind       sample.Kind
	number     uint64 // of all parts that were begun
	first      uint64 // when its first batch begins, Unix ns
	start, end uint64 // Unix ns
	profile    *pprof.Builder
	samples    int64
}

type partKey struct {
	service string
	kind    sample.Kind
}

// total is what was sent.
type total struct {
	profiles, samples int64
	services          map[string]bool
}

// String is for the terminal.
func (t total) String() string {
	return fmt.Sprintf("%d profiles of %d services, %d samples", t.profiles, len(t.services), t.samples)
}

// gatherer makes parts of what files have and sends those that are full.
type gatherer struct {
	service string
	omit    command.List
	send    func(*part) error
	stop    context.CancelFunc // ends the reading
	now     func() time.Time

	parts     map[partKey]*part
	begun     uint64 // parts
	bytes     int    // of all parts
	sent      total
	malformed int64
	cutTimes  int64 // times of one sample
	ignored   int64
	lost      int64 // labels whose key was taken already, or without a value
	cut       int64 // samples whose service has a longer name
	ended     error // files that end within a request
	kept      sample.Sample
	process   sample.Process // of kept
	err       error          // the first
}

var _ interface {
	Consume(pprofile.Profiles)
	ConsumePprof(*pprofprofile.Profile)
	Cut(error)
} = (*gatherer)(nil)

func newGatherer(f *settings, send func(*part) error, stop context.CancelFunc) *gatherer {
	return &gatherer{
		service: f.service, omit: f.omit, send: send, stop: stop, now: time.Now,
		parts: map[partKey]*part{}, sent: total{services: map[string]bool{}},
	}
}

// Consume implements input.Consumer.
func (g *gatherer) Consume(profiles pprofile.Profiles) {
	g.take(func(visit func(*sample.Sample)) sample.Batch { return otlp.Walk(profiles, visit) })
}

// ConsumePprof implements input.Consumer.
func (g *gatherer) ConsumePprof(p *pprofprofile.Profile) {
	g.take(func(visit func(*sample.Sample)) sample.Batch { return pprof.Walk(p, visit) })
}

// Cut implements input.Consumer.
func (g *gatherer) Cut(err error) { g.ended = errors.Join(g.ended, err) }

// take gathers the samples of a batch. Its times have to be known before a part of it goes:
// it is walked twice.
func (g *gatherer) take(walk sample.Walk) {
	found := walk(func(*sample.Sample) {})
	if found.StartNs == 0 || found.EndNs < found.StartNs { // a pprof file need not tell
		found.EndNs = uint64(g.now().UnixNano())
		found.StartNs = found.EndNs
	}
	walk(func(s *sample.Sample) { g.add(s, &found) })
	g.malformed += found.Malformed
	g.cutTimes += found.Cut
	g.ignored += found.OtherProfiles
}

func (g *gatherer) add(s *sample.Sample, of *sample.Batch) {
	key := partKey{g.nameOf(s), s.Kind}
	p := g.part(key, of.StartNs)
	if p == nil {
		return
	}
	p.span(of)
	before := p.profile.Bytes()
	p.profile.Add(g.without(s))
	p.samples += s.Hits
	g.bytes += p.profile.Bytes() - before
	switch {
	case p.profile.Bytes() >= partBytes || p.profile.Samples() >= partSamples:
		g.deliver(key)
	case g.bytes >= gatheredBytes:
		g.flush()
	}
}

// part is where samples of a batch go that begins then; nil: no more is sent.
func (g *gatherer) part(key partKey, startNs uint64) *part {
	p := g.parts[key]
	if p != nil && max(p.first, startNs)-min(p.first, startNs) >= partSpan {
		g.deliver(key)
		p = nil
	}
	if g.err != nil {
		return nil
	}
	if p == nil {
		p = newPart(key, g.begun, startNs)
		g.begun++
		g.parts[key] = p
		g.bytes += emptyPartBytes
	}
	return p
}

func newPart(key partKey, number, first uint64) *part {
	p := &part{
		service: key.service, kind: key.kind, number: number, first: first, start: math.MaxUint64, profile: pprof.New(pprof.MaxBytes),
	}
	p.profile.Names(labelName, serviceLabel)
	if key.kind == sample.OffCPU {
		p.profile.OffCPU()
	}
	return p
}

// nameOf is the service of a sample: what its resource says goes before labels, as in the
// backends that take OTLP.
func (g *gatherer) nameOf(s *sample.Sample) string {
	name, _ := s.Process.Lookup(keyService)
	if name == "" {
		name, _ = s.Lookup(keyService)
	}
	if name == "" {
		name = g.service
	}
	if name == "" {
		name = "unknown_service"
		if executable, _ := s.Lookup(sample.KeyProcessName); executable != "" {
			name += ":" + executable
		}
	}
	if len(name) > nameBytes {
		name = name[:nameBytes]
		g.cut++
	}
	return strings.ToValidUTF8(name, "_")
}

// without returns a sample without the labels that are not sent, valid until the next call.
// What kind of time it has, its part says.
func (g *gatherer) without(s *sample.Sample) *sample.Sample {
	omitted := func(key string) bool {
		return slices.Contains(g.omit, strings.TrimPrefix(key, sample.LabelPrefix))
	}
	appendSent := func(to, all []sample.Attribute) []sample.Attribute {
		for _, a := range all {
			if a.Key != keyService && !omitted(a.Key) {
				to = append(to, a)
			}
		}
		return to
	}
	attributes := g.process.Attributes[:0]
	g.process = *s.Process
	g.process.Attributes = appendSent(attributes, s.Process.Attributes)
	if omitted(sample.KeyPID) {
		g.process.PID = 0
	}
	if omitted(sample.KeyProcessName) {
		g.process.Name = ""
	}
	g.kept = sample.Sample{Kind: sample.OnCPU, Hits: s.Hits, Ns: s.Ns, PeriodNs: s.PeriodNs, Process: &g.process, Stack: s.Stack, Attributes: appendSent(g.kept.Attributes[:0], s.Attributes)}
	if !omitted(sample.KeyTraceID) {
		g.kept.TraceID = s.TraceID
	}
	if !omitted(sample.KeySpanID) {
		g.kept.SpanID = s.SpanID
	}
	return &g.kept
}

// span widens the time that a part covers. Each begins some ns later than what it is of, and no two at one time:
// Pyroscope keeps one of several profiles of equal labels and time.
func (p *part) span(of *sample.Batch) {
	start := of.StartNs + p.number
	end := max(of.EndNs, start)
	p.start, p.end = min(p.start, start), max(p.end, end)
	p.profile.Span(start, end)
}

// serviceLabel is the label that Pyroscope makes of a service's name.
const serviceLabel = "service_name"

// labelName is a key as Pyroscope takes and keeps it: with another it would refuse the profile.
func labelName(key string) string { return labels.Undotted(labels.PrometheusName(key)) }

// flush sends all that is gathered, in the order of services.
func (g *gatherer) flush() {
	for _, key := range slices.SortedFunc(maps.Keys(g.parts), func(a, b partKey) int {
		if a.service != b.service {
			return strings.Compare(a.service, b.service)
		}
		return int(a.kind) - int(b.kind)
	}) {
		if g.err == nil {
			g.deliver(key)
		}
	}
}

func (g *gatherer) deliver(key partKey) {
	p := g.parts[key]
	delete(g.parts, key)
	g.bytes -= p.profile.Bytes() + emptyPartBytes
	g.lost += p.profile.Lost()
	if err := g.send(p); err != nil {
		g.err = fmt.Errorf("send a profile of %s: %w", shown(p.service), err)
		g.stop()
		return
	}
	g.sent.profiles++
	g.sent.samples += p.samples
	g.sent.services[p.service] = true
}

// notes are the counters of what was left out, as far as there is any, a sentence each.
func (g *gatherer) notes() []string {
	var notes []string
	if g.lost > 0 {
		notes = append(notes, fmt.Sprintf("%d labels not sent: another one has the key, or it has no value", g.lost))
	}
	if g.cut > 0 {
		notes = append(notes, fmt.Sprintf("%d samples of services with names of more than %d bytes, which were cut", g.cut, nameBytes))
	}
	if g.malformed > 0 {
		notes = append(notes, fmt.Sprintf("%d malformed samples ignored", g.malformed))
	}
	if g.cutTimes > 0 {
		notes = append(notes, fmt.Sprintf("%d times of more than 13 days cut to that: sums are too small", g.cutTimes))
	}
	if g.ignored > 0 {
		notes = append(notes, fmt.Sprintf("%d profiles that are neither of CPU time nor off-CPU ignored", g.ignored))
	}
	return notes
}
