package profile

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func buildFrames(t *testing.T, r Resolver, samples ...Sample) pprofile.Profiles {
	t.Helper()
	b := NewBuilder(Options{Period: 1})
	for i := range samples {
		samples[i].TimeUnixNano = 1500
		b.Add(&samples[i])
	}
	p, _ := buildOne(b, r, 1000, 2000)
	flatten(t, p)
	return p
}

func TestFrameInFull(t *testing.T) {
	m := &Mapping{Start: 0x1000, Limit: 0x2000, FileOffset: 0x3000, Filename: "/bin/a", BuildIDGNU: "abcd", BuildIDGo: "a/b", BuildIDHTLHash: "0123"}
	p := buildFrames(t, &resolver{frames: map[uint64]Frame{
		0x1234: {Mapping: m, Lines: []Line{{"main", "main.c", 42, 40}}, Type: "native"},
	}}, Sample{UserFrames: []uint64{0x1234}})
	d := p.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	require.Equal(t, 2, d.LocationTable().Len())
	l := d.LocationTable().At(1)
	require.Equal(t, uint64(0x1234), l.Address())
	require.Equal(t, 1, l.Lines().Len())
	require.Equal(t, int64(42), l.Lines().At(0).Line())
	f := d.FunctionTable().At(int(l.Lines().At(0).FunctionIndex()))
	require.Equal(t, "main", text(f.NameStrindex()))
	require.Equal(t, "main.c", text(f.FilenameStrindex()))
	require.Equal(t, int64(40), f.StartLine())
	attrs := func(indexes []int32) map[string]any {
		got := map[string]any{}
		for _, i := range indexes {
			a := d.AttributeTable().At(int(i))
			got[text(a.KeyStrindex())] = a.Value().AsRaw()
		}
		return got
	}
	require.Equal(t, map[string]any{"profile.frame.type": "native"}, attrs(l.AttributeIndices().AsRaw()))
	require.Equal(t, 2, d.MappingTable().Len())
	got := d.MappingTable().At(int(l.MappingIndex()))
	require.Equal(t, []uint64{0x1000, 0x2000, 0x3000}, []uint64{got.MemoryStart(), got.MemoryLimit(), got.FileOffset()})
	require.Equal(t, "/bin/a", text(got.FilenameStrindex()))
	require.Equal(t, map[string]any{
		"process.executable.build_id.gnu": "abcd", "process.executable.build_id.go": "a/b",
		"process.executable.build_id.htlhash": "0123",
	}, attrs(got.AttributeIndices().AsRaw()))
}

// Inlined functions are lines of one location, which differs from others by all of them.
func TestInlined(t *testing.T) {
	inner, middle, outer := Line{"inner", "a.go", 1, 1}, Line{"middle", "a.go", 20, 18}, Line{"outer", "b.go", 300, 290}
	other := middle
	other.Line++
	r := &resolver{frames: map[uint64]Frame{}}
	var samples []Sample
	for i, lines := range [][]Line{
		{inner, middle, outer}, {inner, {}, middle, outer}, {inner, outer}, {inner, other, outer}, {inner}, {outer, middle, inner},
	} {
		// Of different processes, at one address.
		r.frames[uint64(i)] = Frame{Lines: lines, Type: "go"}
		samples = append(samples, Sample{Process: uint64(i), UserFrames: []uint64{0x40}})
	}
	p := buildFrames(t, byProcess{r}, samples...)
	d := p.Dictionary()
	require.Equal(t, 1+5, d.LocationTable().Len())
	require.Equal(t, 1+3, d.FunctionTable().Len())
	lines := d.LocationTable().At(1).Lines()
	require.Equal(t, 3, lines.Len())
	for i, want := range []Line{inner, middle, outer} {
		got := d.FunctionTable().At(int(lines.At(i).FunctionIndex()))
		require.Equal(t, want.Function, d.StringTable().At(int(got.NameStrindex())))
		require.Equal(t, want.StartLine, got.StartLine())
		require.Equal(t, want.Line, lines.At(i).Line())
	}
}

// byProcess has the frame of a process at all its addresses.
type byProcess struct{ *resolver }

func (r byProcess) RuntimeFrame(uint64, record.RuntimeWord, uint64) Frame { return Frame{} }

func (r byProcess) Epoch(uint64, uint32) uint32 { return 0 }

func (r byProcess) Frame(process uint64, _ uint32, _ FrameKind, _ uint64) Frame {
	return r.frames[process]
}

// Everything a frame lacks is left out; a frame of which nothing is known, and
// whose address is 0, still is a location.
func TestFrameWithLess(t *testing.T) {
	p := buildFrames(t, &resolver{frames: map[uint64]Frame{
		0x10: {},
		0x20: {Lines: []Line{{File: "only.c", Line: -3}}},
		0x30: {Lines: []Line{{Line: 7}}, Mapping: &Mapping{}},
		0:    {Lines: []Line{{Line: 9}, {StartLine: 1}}},
	}}, Sample{UserFrames: []uint64{0x10, 0x21, 0x31, 0}})
	d := p.Dictionary()
	require.Equal(t, 5, d.LocationTable().Len())
	at := d.LocationTable().At
	require.Equal(t, []int{1, 0, 1, 0}, []int{at(1).Lines().Len(), at(2).Lines().Len(), at(3).Lines().Len(), at(4).Lines().Len()})
	require.Zero(t, at(3).Lines().At(0).Line())
	require.Equal(t, 1, d.MappingTable().Len())
	require.Equal(t, 2, d.AttributeTable().Len())
	require.Equal(t, "native", d.AttributeTable().At(1).Value().Str())
	for i := range 4 {
		require.Equal(t, []int32{1}, at(i+1).AttributeIndices().AsRaw())
	}
	require.Equal(t, "[unknown]", locationName(d, 1))
}

func TestMappings(t *testing.T) {
	inside := Mapping{Start: 0x1000, Limit: 0x2000, Filename: "/a"}
	again, other := inside, inside
	other.BuildIDGNU = "ff"
	p := buildFrames(t, &resolver{frames: map[uint64]Frame{
		0x0fff: {Mapping: &inside}, 0x1000: {Mapping: &inside}, 0x1fff: {Mapping: &again}, 0x2000: {Mapping: &inside},
		0x1100: {Mapping: &other}, 0x9000: {Mapping: &Mapping{Filename: "[kernel]"}},
	}}, Sample{UserFrames: []uint64{0x0fff, 0x1001, 0x2000, 0x2001, 0x1101, 0x9001}})
	d := p.Dictionary()
	var got []int32
	for _, l := range d.LocationTable().All() {
		got = append(got, l.MappingIndex())
	}
	require.Equal(t, []int32{0, 1, 2, 0, 3, 3, 0}, got)
	require.Equal(t, 4, d.MappingTable().Len())
}

// The Resolver is asked once for a frame; kernel frames belong to no process.
func TestFramesAreAskedOnce(t *testing.T) {
	r := &resolver{}
	p := buildFrames(t, r,
		Sample{Process: 1, KernelFrames: []uint64{0x50, 0x61}, UserFrames: []uint64{0x10, 0x21}},
		Sample{Process: 1, KernelFrames: []uint64{0x50}, UserFrames: []uint64{0x20}},
		Sample{Process: 2, KernelFrames: []uint64{0x60}, UserFrames: []uint64{0x10, 0x51}},
	)
	require.Equal(t, []frameKey{
		{1, 0, User, 0x20}, {1, 0, User, 0x10}, {1, 0, Kernel, 0x60}, {1, 0, Kernel, 0x50}, {2, 0, User, 0x50}, {2, 0, User, 0x10},
	}, r.asked, "from the outermost")
	require.Equal(t, 1+5, p.Dictionary().LocationTable().Len(), "equal frames of two processes are one location")
}

// perProcess names a user frame after its process, too.
type perProcess struct{ resolver }

func (r *perProcess) RuntimeFrame(uint64, record.RuntimeWord, uint64) Frame { return Frame{} }

func (r *perProcess) Epoch(uint64, uint32) uint32 { return 0 }

func (r *perProcess) Frame(process uint64, _ uint32, kind FrameKind, addr uint64) Frame {
	f := r.resolver.Frame(process, 0, kind, addr)
	if kind == User {
		f.Lines[0].Function += fmt.Sprintf("@%d", process)
	}
	return f
}

// One stack of addresses means something else in every process.
func TestStacksAreResolvedByProcess(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	for process := range uint64(3) {
		s := Sample{Process: process, TimeUnixNano: 1500, KernelFrames: []uint64{0x50}, UserFrames: []uint64{0x10, 0x21}}
		b.Add(&s)
	}
	p, _ := buildOne(b, &perProcess{}, 1000, 2000)
	var got []string
	for _, f := range flatten(t, p) {
		got = append(got, f.stack)
	}
	require.Equal(t, []string{"k50 u10@0 u20@0", "k50 u10@1 u20@1", "k50 u10@2 u20@2"}, got)
}

// One stack of addresses means something else in another epoch of a process, but not in one that is alike.
func TestStacksAreResolvedByEpoch(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	for _, epoch := range []uint32{0, 1, 2, 3, 2, 4} {
		s := Sample{Process: 7, Epoch: epoch, TimeUnixNano: 1500, KernelFrames: []uint64{0x50}, UserFrames: []uint64{0x10, 0x21}}
		b.Add(&s)
	}
	s := Sample{Process: 7, Epoch: 1, TimeUnixNano: 1500, UserFrames: []uint64{0x18, 0x21}}
	b.Add(&s)
	require.Equal(t, 6, len(b.entries))
	r := &resolver{alike: 2}
	p, _ := buildOne(b, r, 1000, 2000)
	got := map[string]int{}
	for _, f := range flatten(t, p) {
		got[f.stack] += len(f.times)
	}
	require.Equal(t, map[string]int{
		"k50 u10 u20": 2, "k50 u10.2 u20.2": 3, "k50 u10.4 u20.4": 1, "u18 u20": 1,
	}, got)
	require.Len(t, r.asked, 3*2+1+1, "once in epochs that are alike")
}

// A user frame at the address of the kernel frame before is no kernel frame.
func TestCommonFramesAreUserFrames(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	for _, s := range []Sample{
		{Process: 1, TimeUnixNano: 1500, KernelFrames: []uint64{0x50}, UserFrames: []uint64{0x10}},
		{Process: 1, TimeUnixNano: 1500, UserFrames: []uint64{0x50, 0x11}},
	} {
		b.Add(&s)
	}
	flat := buildFlat(t, b)
	require.Equal(t, "k50 u10", flat[0].stack)
	require.Equal(t, "u50 u10", flat[1].stack)
}

func TestNamesAreMadeValid(t *testing.T) {
	p := buildFrames(t, &resolver{frames: map[uint64]Frame{
		0x10: {Lines: []Line{{Function: "f\xff", File: "\xfe.c"}}, Type: "t\xff", Mapping: &Mapping{Limit: 0x100, Filename: "/\xfd", BuildIDGNU: "\xfc", BuildIDHTLHash: "\xfb"}},
		0x20: {Lines: []Line{{Function: `f\xff`, File: `\xfe.c`}}, Type: `t\xff`, Mapping: &Mapping{Limit: 0x100, Filename: `/\xfd`, BuildIDGNU: `\xfc`, BuildIDHTLHash: `\xfb`}},
	}}, Sample{UserFrames: []uint64{0x10, 0x21}})
	d := p.Dictionary()
	require.Equal(t, 2, d.FunctionTable().Len())
	require.Equal(t, 2, d.MappingTable().Len())
	require.Contains(t, d.StringTable().AsRaw(), `f\xff`)
}
