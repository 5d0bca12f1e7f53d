//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A tally counts judged samples.
type tally struct {
	samples, whole, wrong int
}

func (n *tally) add(m *tally) {
	n.samples += m.samples
	n.whole += m.whole
	n.wrong += m.wrong
}

// share of the samples that are complete.
func (n *tally) share() float64 { return share(n.whole, n.samples) }

// A stackSink is a next consumer that judges the stacks of known programs.
type stackSink struct {
	t  *testing.T
	mu sync.Mutex // guards what follows, the programs included

	programs map[int64]*stackProgram // by PID
	names    map[string]string       // normalized
}

// A stackProgram is a running program that tells its stacks.
type stackProgram struct {
	stackSpec
	started time.Time
	since   time.Time // when its samples begin to count

	cases      map[string]*tally // of samples that tell their stack
	order      []string          // of the cases
	unlabelled tally             // of which only the root is known
	installing int               // samples in the middle of an exception, which do not count
	delivering int               // samples in the middle of the start of a signal's handler, which do not count either
	cut        int               // nor do samples of a runtime's own stack
	inVDSO     int               // of those that count
	firstWhole time.Time

	partial   int               // incomplete ones
	partialAt map[int]int       // by half seconds since the start
	examples  map[string]string // the first of each case and verdict
}

func newStackSink(t *testing.T) *stackSink {
	return &stackSink{t: t, programs: map[int64]*stackProgram{}, names: map[string]string{}}
}

func (s *stackSink) watch(pid int, p *stackProgram) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.cases, p.examples, p.partialAt = map[string]*tally{}, map[string]string{}, map[int]int{}
	s.programs[int64(pid)] = p
}

// all reports whether something holds of each program.
func (s *stackSink) all(programs []*stackProgram, holds func(*stackProgram) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(programs, func(p *stackProgram) bool { return !holds(p) })
}

// count has the samples of programs count that are taken from now on.
func (s *stackSink) count(programs []*stackProgram) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range programs {
		p.since = time.Now()
	}
}

// counted is what is judged of a program, over all of its cases.
func (p *stackProgram) counted() (all tally) {
	if p.untold {
		all = p.unlabelled
	}
	for _, c := range p.cases {
		all.add(c)
	}
	return all
}

func (s *stackSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *stackSink) ConsumeProfiles(_ context.Context, profiles pprofile.Profiles) error {
	checkConformance(s.t, profiles)
	s.mu.Lock()
	defer s.mu.Unlock()
	stacks := stackReader{dict: profiles.Dictionary(), names: s.names}
	for _, rp := range profiles.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		p := s.programs[pid.Int()]
		if p == nil {
			continue
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				for _, sample := range profile.Samples().All() {
					p.judge(&stacks, sample)
				}
			}
		}
	}
	return nil
}

// judge counts each timestamp of a sample.
func (p *stackProgram) judge(stacks *stackReader, sample pprofile.Sample) {
	frames := stacks.user(sample.StackIndex())
	name, what := stacks.label(sample, "case"), stacks.label(sample, "stack")
	known := p.pattern
	if what != "" {
		var err error
		if known, err = parsePattern(what); err != nil {
			p.example(name, "%v", err)
			known = pattern{{function: "w_unknown"}}
		}
	}
	truncated := stacks.attribute(sample, "custom_labels.stack_truncated") != ""
	var result verdict
	switch {
	case known != nil:
		result = known.match(frames, !truncated, &p.rules)
	case truncated:
		result = verdictPartial
	case len(frames) == 0 || p.rules.entry(&frames[len(frames)-1]): // the thread is being made, or has given up its memory
		result = verdictWhole
	}
	if result != verdictWhole && installing(frames) {
		p.installing += sample.TimestampsUnixNano().Len()
		return
	}
	if result != verdictWhole && delivering(frames, stacks.kernel(sample.StackIndex())) {
		p.delivering += sample.TimestampsUnixNano().Len()
		return
	}
	if truncated && p.rules.cut(frames) {
		p.cut += sample.TimestampsUnixNano().Len()
		return
	}
	to := &p.unlabelled
	if known != nil {
		if to = p.cases[name]; to == nil {
			to = &tally{}
			p.cases[name] = to
			p.order = append(p.order, name)
		}
	}
	for _, ns := range sample.TimestampsUnixNano().All() {
		at := time.Unix(0, int64(ns))
		if known != nil && result == verdictWhole && (p.firstWhole.IsZero() || at.Before(p.firstWhole)) {
			p.firstWhole = at
		}
		if p.since.IsZero() || at.Before(p.since) {
			continue
		}
		to.samples++
		if len(frames) > 0 && frames[0].mapping == "[vdso]" {
			p.inVDSO++
		}
		switch {
		case result == verdictWrong:
			to.wrong++
		case result == verdictPartial:
			p.partial++
			p.partialAt[int(at.Sub(p.started)/(500*time.Millisecond))]++
		case result == verdictWhole:
			to.whole++
			continue
		}
		p.example(fmt.Sprintf("%s, verdict %d", name, result), "truncated %v, %q: %s; kernel: %s", truncated, what, describe(frames), stacks.kernel(sample.StackIndex()))
	}
}

func (p *stackProgram) example(of, format string, args ...any) {
	if p.examples[of] == "" {
		p.examples[of] = fmt.Sprintf(format, args...)
	}
}

// describe lists a stack's frames, leaf first; of many, those at its ends.
func describe(frames []frame) string {
	var b strings.Builder
	for i, f := range frames {
		if i == 12 && len(frames) > 40 {
			fmt.Fprintf(&b, " ... %d more ...", len(frames)-24)
		}
		if i >= 12 && len(frames) > 40 && i < len(frames)-12 {
			continue
		}
		name := f.function
		if name == "" {
			name = "(in " + f.mapping + ")"
		}
		fmt.Fprintf(&b, " %s@%x", name, f.address)
	}
	return b.String()
}

// A stackReader reads the stacks and attributes of one batch.
type stackReader struct {
	dict   pprofile.ProfilesDictionary
	names  map[string]string
	stacks map[int32][]frame
}

// user returns the user frames of a stack, leaf first.
func (r *stackReader) user(stack int32) []frame {
	if frames, ok := r.stacks[stack]; ok {
		return frames
	}
	var frames []frame
	for _, i := range r.dict.StackTable().At(int(stack)).LocationIndices().All() {
		loc := r.dict.LocationTable().At(int(i))
		m := r.dict.MappingTable().At(int(loc.MappingIndex()))
		f := frame{mapping: r.text(m.FilenameStrindex()), address: loc.Address() - m.MemoryStart() + m.FileOffset()}
		for _, a := range loc.AttributeIndices().All() {
			kv := r.dict.AttributeTable().At(int(a))
			if r.text(kv.KeyStrindex()) == "profile.frame.type" {
				f.kind = kv.Value().Str()
			}
		}
		if f.kind == "kernel" {
			continue
		}
		if loc.Lines().Len() == 0 {
			frames = append(frames, f)
		}
		for _, line := range loc.Lines().All() { // callees first
			f.function = r.normalized(r.text(r.dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
			frames = append(frames, f)
		}
	}
	if r.stacks == nil {
		r.stacks = map[int32][]frame{}
	}
	r.stacks[stack] = frames
	return frames
}

// kernel names the kernel frames of a stack.
func (r *stackReader) kernel(stack int32) string {
	var names []string
	for _, i := range r.dict.StackTable().At(int(stack)).LocationIndices().All() {
		loc := r.dict.LocationTable().At(int(i))
		m := r.dict.MappingTable().At(int(loc.MappingIndex()))
		if !strings.HasPrefix(r.text(m.FilenameStrindex()), "[kernel") {
			break
		}
		for _, line := range loc.Lines().All() {
			names = append(names, r.text(r.dict.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
		}
	}
	return strings.Join(names, " ")
}

func (r *stackReader) text(i int32) string { return r.dict.StringTable().At(int(i)) }

func (r *stackReader) normalized(name string) string {
	short, ok := r.names[name]
	if !ok {
		short = normalize(name)
		r.names[name] = short
	}
	return short
}

// label returns what a program has published under a key.
func (r *stackReader) label(sample pprofile.Sample, key string) string {
	return r.attribute(sample, prefix+key)
}

func (r *stackReader) attribute(sample pprofile.Sample, key string) string {
	for _, i := range sample.AttributeIndices().All() {
		kv := r.dict.AttributeTable().At(int(i))
		if r.text(kv.KeyStrindex()) == key {
			return kv.Value().AsString()
		}
	}
	return ""
}
