package profile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// asked counts what a Resolver is asked for.
type asked struct {
	quietResolver
	frames, runtime, expected map[uint64]int // by process
}

func newAsked() *asked {
	return &asked{frames: map[uint64]int{}, runtime: map[uint64]int{}, expected: map[uint64]int{}}
}

func (a *asked) Expect(process uint64, epoch uint32, addrs []uint64) {
	a.expected[process] += len(addrs)
}

func (a *asked) Frame(process uint64, epoch uint32, kind FrameKind, addr uint64) Frame {
	a.frames[process]++
	return a.quietResolver.Frame(process, epoch, kind, addr)
}

func (a *asked) RuntimeFrame(process uint64, _ record.RuntimeWord, _ uint64) Frame {
	a.runtime[process]++
	return Frame{Lines: []Line{{Function: "method"}}}
}

// flood adds samples of a process whose stacks have no address twice.
func flood(b *Builder, process uint64, samples, depth int) {
	addr := uint64(0x7f0000000000)
	s := Sample{Process: process, TimeUnixNano: 1500, UserFrames: make([]uint64, depth), UserStack: record.OutcomePresent}
	for range samples {
		for i := range s.UserFrames {
			addr += 16
			s.UserFrames[i] = addr
		}
		b.Add(&s)
	}
}

func framesNamed(p pprofile.Profiles, name string) (n int) {
	d := p.Dictionary()
	for _, s := range d.StackTable().All() {
		for _, i := range s.LocationIndices().All() {
			if i != 0 && locationName(d, i) == name {
				n++
			}
		}
	}
	return n
}

// Who makes up addresses has as many as the bound, and then one that stands for all others. Nobody asks for what those
// stand for, and another user has all of his frames, also in the same process.
func TestFramesBounded(t *testing.T) {
	const samples, depth, bound = 2000, 1000, 16 << 10
	opts := Options{Period: 1, MaxFrames: bound}
	many, quiet := NewBuilder(opts), NewBuilder(opts)
	flood(many, 1, samples, depth)
	for _, process := range []uint64{1, 2} {
		s := Sample{Process: process, TimeUnixNano: 1500, UserFrames: []uint64{0x10, 0x21}, UserStack: record.OutcomePresent}
		quiet.Add(&s)
	}
	r := newAsked()
	p, stats, grown, told := built(t, r, many, quiet)
	require.LessOrEqual(t, grown, told)
	require.EqualValues(t, samples+2, stats.Samples)
	require.LessOrEqual(t, r.frames[1], bound+depth+2)
	require.Equal(t, 2, r.frames[2])
	require.LessOrEqual(t, r.expected[1], bound+maxExpected+depth+2)
	require.LessOrEqual(t, p.Dictionary().LocationTable().Len(), bound+depth+5)
	require.Equal(t, samples-many.LackingFrames(), (bound+depth-1)/depth, "whole stacks")
	require.Zero(t, quiet.LackingFrames())
	require.Positive(t, framesNamed(p, tooManyFrames))
	flat := flatten(t, p)
	require.Equal(t, "function_1 function_2", flat[len(flat)-1].stack)
	require.Equal(t, "function_1 function_2", flat[len(flat)-2].stack)

	many.Reset()
	require.Zero(t, many.LackingFrames())
}

// A stack that is known when there is no room for further frames is whole, and so is what it has in common with others.
// Another user's stack has all of its frames, also those that another's in the same process lacks.
func TestFramesKnown(t *testing.T) {
	opts := everything()
	opts.MaxFrames = 3
	b, other := NewBuilder(opts), NewBuilder(opts)
	for i, user := range [][]uint64{{0x10, 0x21, 0x31}, {0x40, 0x51, 0x31}, {0x10, 0x21, 0x31}, {0x21, 0x31}, {0x60, 0x51, 0x31}, {0x60, 0x51, 0x31}} {
		s := sample()
		s.KernelFrames, s.UserFrames, s.TID = []uint64{0xff00 + uint64(i)}, user, uint32(1+i)
		if i < 5 {
			b.Add(&s)
		} else {
			other.Add(&s)
		}
	}
	p, _ := buildAll([]*Builder{b, other}, &resolver{}, 1000, 2000)
	var stacks []string
	for _, s := range flatten(t, p) {
		stacks = append(stacks, s.stack)
	}
	require.Equal(t, []string{
		"kff00 u10 u20 u30", "kff01 " + tooManyFrames + " " + tooManyFrames + " u30", "kff02 u10 u20 u30",
		"kff03 " + tooManyFrames + " u30", "kff04 " + tooManyFrames + " " + tooManyFrames + " u30", "kff05 u60 u50 u30",
	}, stacks)
	require.Equal(t, 3, b.LackingFrames())
	require.Zero(t, other.LackingFrames())
}

// Frames of language runtimes count, too.
func TestRuntimeFramesBounded(t *testing.T) {
	b := NewBuilder(Options{Period: 1, MaxFrames: 10})
	for i := range uint64(100) {
		s := Sample{TimeUnixNano: 1500, UserFrames: []uint64{uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2)), 64 * i}}
		b.Add(&s)
	}
	r := newAsked()
	p, _ := buildOne(b, r, 1000, 2000)
	flatten(t, p)
	require.Equal(t, 9, r.runtime[0], "the first takes the attribute of all with it, and counts twice")
	require.Equal(t, 91, b.LackingFrames())
}

// inlining is a Resolver whose frames stand for many functions that were inlined, no two alike.
type inlining struct{ asked }

const inlined = 128

func inlinedFrame(n int) Frame {
	f := Frame{Lines: make([]Line, inlined)}
	for i := range f.Lines {
		f.Lines[i] = Line{Function: "f", Line: int64(n)}
	}
	return f
}

func (r *inlining) Frame(process uint64, _ uint32, kind FrameKind, addr uint64) Frame {
	if kind == Kernel {
		return inlinedFrame(int(addr))
	}
	r.frames[process]++
	return inlinedFrame(r.frames[process])
}

func (r *inlining) RuntimeFrame(process uint64, _ record.RuntimeWord, _ uint64) Frame {
	r.runtime[process]++
	return inlinedFrame(r.runtime[process])
}

// A frame that stands for many inlined functions, or has a long name, counts for as many as it takes memory for: what a
// user's frames take in the output is bounded whatever they are. Those of the kernel do not count.
func TestFramesWeighed(t *testing.T) {
	const bound, samples = 1000, 2000
	for name, sampled := range map[string]func(i uint64) Sample{
		"native": func(i uint64) Sample { return Sample{UserFrames: []uint64{16 * i}} },
		"runtime": func(i uint64) Sample {
			return Sample{UserFrames: []uint64{uint64(record.NewRuntimeWord(record.RuntimeHotSpot, 1, 2)), 64 * i}}
		},
		"below the kernel's": func(i uint64) Sample { return Sample{KernelFrames: []uint64{0xff00 + i}, UserFrames: []uint64{16 * i}} },
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(Options{Period: 1, MaxFrames: bound})
			for i := range uint64(samples) {
				s := sampled(1 + i)
				s.TimeUnixNano = 1500
				b.Add(&s)
			}
			r := &inlining{*newAsked()}
			_, _, grown, told := built(t, r, b)
			require.LessOrEqual(t, grown, told)
			const each = 1 + inlined*tableLineBytes/frameBytes
			require.InDelta(t, bound/each, r.frames[0]+r.runtime[0], 2)
			if name != "below the kernel's" {
				require.LessOrEqual(t, told, 4*bound*frameBytes, "what is told is up to twice that")
			}
			require.Equal(t, samples-r.frames[0]-r.runtime[0], b.LackingFrames())
		})
	}
}

// Each of several requests has the frames that there was room for when all was one: they have no more together.
func TestFramesOfPieces(t *testing.T) {
	const samples, depth, bound = 400, 50, 2000
	opts := everything()
	opts.MaxFrames = bound
	b := NewBuilder(opts)
	flood(b, 1, samples, depth)
	r := newAsked()
	pieces, held, total, whole := 0, 0, 0, 0
	for p, stats := range Requests([]*Builder{b}, r, []uint64{1000}, 2000, 32<<10, new(uint64), func(bytes int) { held += bytes }) {
		require.Zero(t, stats.TooLarge)
		require.Greater(t, held, bound*keptFrameBytes, "which frames all had")
		pieces++
		for _, s := range flatten(t, p) {
			total += len(s.times)
			if !strings.Contains(s.stack, tooManyFrames) {
				whole += len(s.times)
			}
		}
	}
	require.Zero(t, held)
	require.Greater(t, pieces, 2)
	require.Equal(t, samples-bound/depth, b.LackingFrames())
	require.Equal(t, samples, total)
	require.Equal(t, bound/depth, whole)
	require.LessOrEqual(t, r.frames[1], 3*bound, "when all is one, and in pieces")
	require.LessOrEqual(t, r.expected[1], maxExpected+3*bound)
}

// What a batch has no room for is the same in its pieces as in all of it: frames that entries of one piece had room for
// are known to those of another.
func TestFramesOfPiecesAreThoseOfAll(t *testing.T) {
	opts := everything()
	opts.MaxFrames = 150
	many, few := NewBuilder(opts), NewBuilder(opts)
	word := uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2))
	for i := range uint64(400) {
		s := sample()
		s.TID, s.Process, s.Epoch = uint32(1+i), 1+i%20/19, uint32(i%3)
		s.UserFrames = []uint64{0x1000 + 16*i, 0x201, word, 64 * (i % 9), 0x101 + i%5, word, 1 << 20, 0x11}
		many.Add(&s)
		s.Process = 3
		if i < 50 {
			few.Add(&s)
		}
	}
	type thread struct {
		process int64
		tid     any
		stack   string
	}
	var want, got []thread
	of := func(s flatSample) thread { return thread{s.process, s.attrs["thread.id"], s.stack} }
	whole, _ := buildAll([]*Builder{many, few}, &methods{}, 1000, 2000)
	partly := 0
	for _, s := range flatten(t, whole) {
		want = append(want, of(s))
		if strings.Contains(s.stack, tooManyFrames) && strings.Contains(s.stack, " u10") && strings.Contains(s.stack, "method") {
			partly++
		}
	}
	lacking := many.LackingFrames()
	require.Greater(t, partly, 200)
	requests, _ := pieces(t, 8<<10, &methods{}, many, few)
	require.Greater(t, len(requests), 4)
	for _, samples := range requests {
		for _, s := range samples {
			got = append(got, of(s))
		}
	}
	require.ElementsMatch(t, want, got)
	require.Equal(t, lacking, many.LackingFrames())
	require.Zero(t, few.LackingFrames())
}

// methods has runtime frames, named by their objects.
type methods struct{ resolver }

func (methods) RuntimeFrame(_ uint64, _ record.RuntimeWord, object uint64) Frame {
	return Frame{Lines: []Line{{Function: fmt.Sprint("method", object)}}}
}

// Frames whose functions the output has already count by what it takes to find these.
func TestFramesOfManyLines(t *testing.T) {
	const bound = 100
	for name, tc := range map[string]struct {
		frame  Frame
		frames int // of which nobody is asked for more
	}{
		"few":  {Frame{Lines: slices.Repeat([]Line{{Function: "f", File: "g"}}, 2)}, bound},
		"many": {Frame{Lines: slices.Repeat([]Line{{Function: "f", File: "g"}}, 128)}, bound / 9},
		"long": {Frame{Lines: slices.Repeat([]Line{{Function: strings.Repeat("f", 4<<10), File: strings.Repeat("g", 4<<10)}}, 2)}, bound / 5},
	} {
		for _, kind := range []uint64{0, uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2))} {
			b := NewBuilder(Options{Period: 1, MaxFrames: bound})
			for i := range uint64(2 * bound) {
				s := Sample{TimeUnixNano: 1500, UserFrames: []uint64{8 + 16*i}, UserStack: record.OutcomePresent}
				if kind != 0 {
					s.UserFrames = []uint64{kind, 64 * i}
				}
				b.Add(&s)
			}
			r := &sameFrame{frame: tc.frame}
			buildAll([]*Builder{b}, r, 1000, 2000)
			require.InDelta(t, tc.frames, r.asked, 3, name)
		}
	}
}

// sameFrame says the same of every frame.
type sameFrame struct {
	resolver
	frame Frame
	asked int
}

func (r *sameFrame) Frame(uint64, uint32, FrameKind, uint64) Frame {
	r.asked++
	return r.frame
}

func (r *sameFrame) RuntimeFrame(uint64, record.RuntimeWord, uint64) Frame {
	r.asked++
	return r.frame
}
