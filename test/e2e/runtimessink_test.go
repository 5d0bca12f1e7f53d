//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// chainRate is how often programs with known call chains are sampled.
var chainRate = size(1999, 1999, 499)

// chainWarm is how long a process is left out after its first warm stack: what was sampled
// before the rows of its files were there is not looked at.
const chainWarm = time.Second

const goneFunction = "<gone>"

// A chainFrame is a line of a location, or a location that has none.
type chainFrame struct {
	name, file, kind string
	line, start      int64
}

// A chainStack is a stack that samples had.
type chainStack struct {
	frames   []chainFrame // leaf first, inlined functions before those that they are in
	function string       // label
	cut      bool
	samples  int
}

// outermostFirst returns those frames of a stack that are wanted.
func outermostFirst(frames []chainFrame, wanted func(chainFrame) bool) (found []chainFrame) {
	for _, f := range slices.Backward(frames) {
		if wanted(f) {
			found = append(found, f)
		}
	}
	return found
}

// chainOf names frames.
func chainOf(frames []chainFrame) string {
	var names []string
	for _, f := range frames {
		names = append(names, f.name)
	}
	return strings.Join(names, ">")
}

// chainSink is the next consumer. It keeps the stacks of the processes that it follows.
type chainSink struct {
	t testing.TB
	// warm tells a stack of a process of which enough is known, after so many that are early;
	// nil: each.
	warm  func(*chainStack) bool
	early int
	// counts tells a stack that is looked at; nil: each.
	counts func(*chainStack) bool

	mu        sync.Mutex
	processes map[int64]*chainProcess
}

type chainProcess struct {
	followed uint64 // all times are Unix ns
	since    uint64 // from then on samples are kept; 0 until there was a warm one
	seen     int
	samples  int
	stacks   map[string]*chainStack // by all that is in the stack
}

func (*chainSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *chainSink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	checkConformance(s.t, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	visitStacks(p, func(pid int64) bool { return s.processes[pid] != nil }, s.add)
	return nil
}

// follow has the samples of processes kept that are taken from now on.
func (s *chainSink) follow(pids ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes == nil {
		s.processes = map[int64]*chainProcess{}
	}
	for _, pid := range pids {
		p := &chainProcess{followed: uint64(time.Now().UnixNano()), stacks: map[string]*chainStack{}}
		if s.warm == nil {
			p.since = p.followed
		}
		s.processes[pid] = p
	}
}

func (s *chainSink) add(pid int64, of *chainStack, times []uint64) {
	if s.counts != nil && !s.counts(of) {
		return
	}
	p, n := s.processes[pid], 0
	for _, at := range times {
		if at < p.followed {
			continue
		}
		p.seen++
		switch {
		case p.since == 0 && p.seen > s.early && s.warm(of):
			p.since = at + uint64(chainWarm)
		case p.since != 0 && at >= p.since:
			n++
		}
	}
	if n == 0 {
		return
	}
	key := fmt.Sprint(*of)
	if p.stacks[key] == nil {
		p.stacks[key] = of
	}
	p.stacks[key].samples += n
	p.samples += n
}

// take waits for so many samples of a process and returns their stacks.
func (s *chainSink) take(pid int64, samples int) []*chainStack {
	awaitCount(s.t, &s.mu, fmt.Sprintf("samples of process %d", pid), samples, func() int { return s.processes[pid].samples })
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.processes[pid].stacks))
}

// visitStacks calls visit for each sample of the processes that are wanted.
func visitStacks(p pprofile.Profiles, wanted func(pid int64) bool, visit func(pid int64, of *chainStack, times []uint64)) {
	dict := p.Dictionary()
	for _, rp := range p.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		if !wanted(pid.Int()) {
			continue
		}
		for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			of := &chainStack{frames: lineFrames(dict, sample.StackIndex())}
			for _, i := range sample.AttributeIndices().All() {
				kv := dict.AttributeTable().At(int(i))
				switch dict.StringTable().At(int(kv.KeyStrindex())) {
				case "function":
					of.function = kv.Value().Str()
				case "custom_labels.stack_truncated":
					of.cut = true
				}
			}
			visit(pid.Int(), of, sample.TimestampsUnixNano().AsRaw())
		}
	}
}

// lineFrames returns the frames of a stack, leaf first: each line of a location is one.
func lineFrames(dict pprofile.ProfilesDictionary, stack int32) (frames []chainFrame) {
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	for _, i := range dict.StackTable().At(int(stack)).LocationIndices().All() {
		loc := dict.LocationTable().At(int(i))
		var f chainFrame
		for _, a := range loc.AttributeIndices().All() {
			if kv := dict.AttributeTable().At(int(a)); text(kv.KeyStrindex()) == "profile.frame.type" {
				f.kind = kv.Value().Str()
			}
		}
		if loc.Lines().Len() == 0 {
			frames = append(frames, f)
		}
		for _, line := range loc.Lines().All() {
			fn := dict.FunctionTable().At(int(line.FunctionIndex()))
			f.name, f.file, f.line, f.start = text(fn.NameStrindex()), text(fn.FilenameStrindex()), line.Line(), fn.StartLine()
			frames = append(frames, f)
		}
	}
	return frames
}

// atRate has a receiver sample so often, and hand over at once.
func atRate(samplesPerSecond int) func(*customlabelsreceiver.Config) {
	return func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = samplesPerSecond
		c.ReportInterval = 500 * time.Millisecond
	}
}

// commandsIn returns what a variable of the environment lists, with commas between.
func commandsIn(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' })
}

// logOdd logs the most frequent of what is not as it should be.
func logOdd(t *testing.T, what string, odd map[string]int) {
	keys := slices.SortedFunc(maps.Keys(odd), func(a, b string) int { return odd[b] - odd[a] })
	for _, key := range keys[:min(20, len(keys))] {
		t.Logf("%s: %d of %q", what, odd[key], key)
	}
}
