package profile

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
)

// frameKey is what a Resolver is asked for.
type frameKey struct {
	process uint64
	epoch   uint32
	kind    FrameKind
	addr    uint64
}

// resolver names every address after itself, unless frames says otherwise.
type resolver struct {
	resource func(process uint64, attrs pcommon.Map)
	frames   map[uint64]Frame
	unwanted uint64 // process
	alike    uint32 // so many epochs are
	asked    []frameKey
	expected map[frameKey]bool // user frames
}

func (r *resolver) Wanted(process uint64, _ int) bool { return process != r.unwanted || process == 0 }

func (r *resolver) Resource(process uint64, attrs pcommon.Map) {
	attrs.PutInt("process.pid", int64(process))
	if r.resource != nil {
		r.resource(process, attrs)
	}
}

func (r *resolver) RuntimeFrame(uint64, record.RuntimeWord, uint64) Frame { return Frame{} }

func (r *resolver) Expect(process uint64, epoch uint32, addrs []uint64) {
	if r.expected == nil {
		r.expected = map[frameKey]bool{}
	}
	for i, addr := range addrs {
		r.expected[frameKey{process, epoch, User, addr}] = true
		addrs[i] = 0
	}
}

func (r *resolver) Epoch(_ uint64, epoch uint32) uint32 { return epoch - epoch%max(r.alike, 1) }

func (r *resolver) Frame(process uint64, epoch uint32, kind FrameKind, addr uint64) Frame {
	r.asked = append(r.asked, frameKey{process, epoch, kind, addr})
	if kind == User && !r.expected[frameKey{process, epoch, kind, addr}] {
		return Frame{Lines: []Line{{Function: "not expected"}}}
	}
	if f, ok := r.frames[addr]; ok {
		return f
	}
	if kind == Kernel {
		return Frame{Lines: []Line{{Function: fmt.Sprintf("k%x", addr)}}, Type: "kernel"}
	}
	if epoch > 0 {
		return Frame{Lines: []Line{{Function: fmt.Sprintf("u%x.%d", addr, epoch)}}, Type: "native"}
	}
	return Frame{Lines: []Line{{Function: fmt.Sprintf("u%x", addr)}}, Type: "native"}
}

// flatSample is a sample with everything that it refers to.
type flatSample struct {
	process int64
	stack   string // names of functions, leaf first
	attrs   map[string]any
	link    labels.Link
	times   []uint64
}

// flatten checks conformance, before and after the wire, and resolves all indexes.
func flatten(t *testing.T, p pprofile.Profiles) []flatSample {
	t.Helper()
	require.Empty(t, conformance.Check(p))
	flat := resolve(t, p)
	sent := pprofile.NewProfiles()
	p.CopyTo(sent) // marshalling rewrites
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(sent)
	require.NoError(t, err)
	back, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	require.NoError(t, err)
	require.Empty(t, conformance.Check(back))
	require.Equal(t, flat, resolve(t, back))
	return flat
}

func resolve(t *testing.T, p pprofile.Profiles) []flatSample {
	t.Helper()
	d := p.Dictionary()
	var flat []flatSample
	for _, rp := range p.ResourceProfiles().All() {
		pid, _ := rp.Resource().Attributes().Get("process.pid")
		for _, s := range theProfile(t, rp).Samples().All() {
			f := flatSample{process: pid.Int(), attrs: map[string]any{}, times: s.TimestampsUnixNano().AsRaw()}
			l := d.LinkTable().At(int(s.LinkIndex()))
			f.link = labels.Link{TraceID: l.TraceID(), SpanID: l.SpanID()}
			var names []string
			for _, i := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				names = append(names, locationName(d, i))
			}
			f.stack = strings.Join(names, " ")
			for _, i := range s.AttributeIndices().All() {
				a := d.AttributeTable().At(int(i))
				f.attrs[d.StringTable().At(int(a.KeyStrindex()))] = a.Value().AsRaw()
			}
			flat = append(flat, f)
		}
	}
	return flat
}

func locationName(d pprofile.ProfilesDictionary, index int32) string {
	l := d.LocationTable().At(int(index))
	if l.Lines().Len() == 0 {
		return fmt.Sprintf("%#x", l.Address())
	}
	return d.StringTable().At(int(d.FunctionTable().At(int(l.Lines().At(0).FunctionIndex())).NameStrindex()))
}

func theProfile(t *testing.T, rp pprofile.ResourceProfiles) pprofile.Profile {
	t.Helper()
	require.Equal(t, 1, rp.ScopeProfiles().Len())
	require.Equal(t, 1, rp.ScopeProfiles().At(0).Profiles().Len())
	return rp.ScopeProfiles().At(0).Profiles().At(0)
}

func buildFlat(t *testing.T, b *Builder) []flatSample {
	t.Helper()
	p, _ := buildOne(b, &resolver{}, 1000, 2000)
	return flatten(t, p)
}

var (
	linkA = labels.Link{TraceID: [16]byte{1, 0xab}, SpanID: [8]byte{2, 0xcd}}
	linkB = labels.Link{TraceID: [16]byte{1, 0xab}, SpanID: [8]byte{3}}
	setA  = labels.NewSet(false, labels.Label{Key: "tenant", Value: "a", Source: record.ABIV1})
	setB  = labels.NewSet(false, labels.Label{Key: "tenant", Value: "b", Source: record.ABIV1})
)

func everything() Options {
	return Options{
		Period: time.Second / 19, LabelPrefix: "label.", TraceAttributes: true,
		ThreadID: true, ThreadName: true, CPUAttribute: true, ScopeName: "scope", ScopeVersion: "1",
	}
}

func sample() Sample {
	return Sample{
		Process: 7, TimeUnixNano: 1500, TID: 8, Comm: []byte("worker"), CPU: 3,
		KernelFrames: []uint64{0xff10, 0xff21}, UserFrames: []uint64{0x10, 0x21, 0x31},
		Set: setA, Link: linkA, UserStack: record.OutcomePresent,
	}
}

// reference aggregates by text, which is slow and hard to get wrong.
type reference struct {
	opts    Options
	samples map[string]*flatSample
}

func (r *reference) add(s *Sample) {
	f := flatSample{process: int64(s.Process), attrs: map[string]any{}, link: s.Link}
	var names []string
	for i, addr := range s.KernelFrames {
		names = append(names, fmt.Sprintf("k%x", addr-uint64(min(i, 1))))
	}
	for i, addr := range s.UserFrames {
		names = append(names, fmt.Sprintf("u%x", addr-uint64(min(i, 1))))
	}
	f.stack = strings.Join(names, " ")
	if len(names) == 0 {
		f.stack = "[unknown]"
	}
	if r.opts.ThreadID && s.TID != 0 {
		f.attrs["thread.id"] = int64(s.TID)
	}
	if r.opts.ThreadName && len(s.Comm) > 0 {
		f.attrs["thread.name"] = string(s.Comm)
	}
	if r.opts.CPUAttribute {
		f.attrs["cpu.logical_number"] = int64(s.CPU)
	}
	if r.opts.TraceAttributes && !s.Link.IsZero() {
		f.attrs["trace_id"] = hex.EncodeToString(s.Link.TraceID[:])
		f.attrs["span_id"] = hex.EncodeToString(s.Link.SpanID[:])
	}
	switch s.UserStack {
	case record.OutcomePresent, record.OutcomeNone, record.OutcomeCompat:
	default:
		f.attrs["custom_labels.stack_truncated"] = true
	}
	if s.KernelStack == record.OutcomeTruncated || s.KernelStack == record.OutcomeFault {
		f.attrs["custom_labels.stack_truncated"] = true
	}
	if s.Set != nil {
		for l := range s.Set.All() {
			f.attrs[r.opts.LabelPrefix+l.Key] = l.Value
		}
		if s.Set.Truncated() {
			f.attrs["custom_labels.truncated"] = true
		}
	}
	id := fmt.Sprintf("%#v", f)
	if r.samples[id] == nil {
		r.samples[id] = &f
	}
	r.samples[id].times = append(r.samples[id].times, s.TimeUnixNano)
}

// sorted orders samples by content, for comparison.
func sorted(flat []flatSample) []flatSample {
	slices.SortFunc(flat, func(a, b flatSample) int {
		return strings.Compare(fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b))
	})
	return flat
}
