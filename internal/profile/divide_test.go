package profile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// longNames has frames with names of so many bytes, by process, and counts how often a process is made.
type longNames struct {
	quietResolver
	bytes map[uint64]int
	made  int
}

func (r *longNames) Resource(process uint64, attrs pcommon.Map) {
	r.made++
	r.quietResolver.Resource(process, attrs)
}

func (r *longNames) Frame(process uint64, _ uint32, _ FrameKind, addr uint64) Frame {
	return Frame{Lines: []Line{{Function: fmt.Sprintf("%0*x", r.bytes[process], addr)}}}
}

// threads has so many entries of a process in a Builder, one of a thread each, whose stacks have frames by their number.
func threads(b *Builder, process uint64, entries, depth int, frame func(entry, i int) int) {
	for entry := range entries {
		s := Sample{Process: process, TID: uint32(1 + entry), TimeUnixNano: 1500, UserFrames: make([]uint64, depth)}
		for i := range s.UserFrames {
			s.UserFrames[i] = uint64(0x1000 + 16*frame(entry, i))
		}
		b.Add(&s)
	}
}

// A stack that is too large for a request is made once, for all entries that have it, and so are several of the same
// frames, and the same stack in several processes.
func TestRequestsOfLargeStack(t *testing.T) {
	const entries, depth, bytes, maxBytes = 2000, 200, 20 << 10, 3_670_016
	for name, frame := range map[string]func(entry, i int) int{
		"one":         func(_, i int) int { return i },
		"many":        func(entry, i int) int { return (entry + i) % depth },
		"of programs": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b, r, most := NewBuilder(everything()), &longNames{bytes: map[uint64]int{1: bytes, 2: 10}}, 50
			if frame != nil {
				threads(b, 1, entries, depth, frame)
			} else {
				for process := range uint64(20) {
					r.bytes[3+process] = bytes
					threads(b, 3+process, entries/20, depth, func(_, i int) int { return i })
				}
			}
			threads(b, 2, 5, depth, func(_, i int) int { return i })
			flat, stats := pieces(t, maxBytes, r, b)
			require.Less(t, r.made, most)
			require.Len(t, flat[0], 5)
			require.EqualValues(t, entries, stats[len(stats)-1].TooLarge)
		})
	}
}

// Entries with one stack share requests, in whatever order they came.
func TestRequestsOfSimilarStacks(t *testing.T) {
	const entries, depth, maxBytes = 200, 40, 128 << 10
	b, r := NewBuilder(everything()), &longNames{bytes: map[uint64]int{1: 2 << 10}}
	threads(b, 1, entries, depth, func(entry, i int) int { return entry%2*depth + i })
	flat, stats := pieces(t, maxBytes, r, b)
	require.Len(t, flat, 2)
	require.EqualValues(t, entries, stats[0].Samples+stats[1].Samples)
	require.Equal(t, 3, r.made)
}

// Who has stacks that no two requests can have in common gets a number of requests that follows from how much there is,
// and loses the rest. Others lose nothing, whether they have more or less.
func TestRequestsOfUserBounded(t *testing.T) {
	const entries, frames, bytes, maxBytes = 300, 80, 1 << 10, 48 << 10
	random := rand.New(rand.NewPCG(1, 2))
	little, much, other := NewBuilder(everything()), NewBuilder(everything()), NewBuilder(everything())
	threads(little, 1, 5, 3, func(_, i int) int { return i })
	threads(much, 2, entries, frames/2, func(int, int) int { return random.IntN(frames) })
	threads(other, 3, 10*entries, 20, func(entry, i int) int { return 20*(entry%50) + i })
	r := &longNames{bytes: map[uint64]int{1: 10, 2: bytes, 3: 2 * bytes}}
	whole, _ := buildAll([]*Builder{much}, r, 1000, 2000)
	bound := requestsShare * (requestBytes(whole)*21/20/maxBytes + 1)
	require.Less(t, 2*bound, entries)

	flat, stats := pieces(t, maxBytes, r, much, little, other)
	requests, samples, tooLarge := map[int64]int{}, map[int64]int{}, uint64(0)
	for i := range flat {
		tooLarge += stats[i].TooLarge
		for _, process := range processesOf(flat[i]) {
			requests[process]++
		}
		for _, s := range flat[i] {
			samples[s.process] += len(s.times)
		}
	}
	require.LessOrEqual(t, requests[2], bound)
	require.EqualValues(t, entries, tooLarge+uint64(samples[2]))
	require.Equal(t, [2]int{5, 10 * entries}, [2]int{samples[1], samples[3]})
}

// differing has frames of all kinds, with mappings, inlined functions and names that are not UTF-8.
type differing struct{ publishing }

func (differing) Frame(_ uint64, _ uint32, _ FrameKind, addr uint64) Frame {
	f := Frame{Type: []string{"native", "go", ""}[addr%3]}
	if addr%2 == 0 {
		f.Mapping = &Mapping{
			Limit: 1 << 63, FileOffset: addr << 12, Filename: fmt.Sprint("/lib/", addr%64), BuildIDGNU: fmt.Sprintf("%040x", addr%64),
			BuildIDGo: "go", BuildIDHTLHash: fmt.Sprint(addr % 64),
		}
	}
	for i := range addr % 5 {
		f.Lines = append(f.Lines, Line{fmt.Sprintf("f%d\xff", addr%500+i), fmt.Sprint("file", addr%50), int64(addr * i), int64(i)})
	}
	return f
}

// differingBuilder has entries that differ in all that they can, with samples of one to many.
func differingBuilder(opts Options, entries int) *Builder {
	b, random := NewBuilder(opts), rand.New(rand.NewPCG(1, 2))
	for i := range entries {
		s := sample()
		s.Process, s.Epoch, s.TID, s.CPU = uint64(1+i%7), uint32(i%2), uint32(i), uint32(i%128)
		s.UserFrames = nil
		for range random.IntN(60) {
			s.UserFrames = append(s.UserFrames, random.Uint64N(1<<40))
		}
		s.Set = labels.NewSet(i%5 == 0,
			labels.Label{Key: fmt.Sprint("key", i%40), Value: strings.Repeat("\xfe", i%300), Source: record.ABIV1},
			labels.Label{Key: "tenant", Value: fmt.Sprint(i), Source: record.ABIThreadContext})
		s.Link = labels.Link{TraceID: [16]byte{byte(i), 1}, SpanID: [8]byte{byte(i >> 8), 1}}
		s.Sampled, s.State = Sampled(i%3), record.ThreadState(i%3)
		for range 1 + i%10 + i%50/49*1000 {
			s.TimeUnixNano, s.OffCPUNs = s.TimeUnixNano+1, random.Int64()
			b.Add(&s)
		}
	}
	return b
}

// What samples take in a request is known before that is made, and nearly exact: no request is made in vain.
func TestSent(t *testing.T) {
	prometheus := everything()
	prometheus.PrometheusNames = true
	off := offCPUOptions()
	off.TraceAttributes, off.ThreadID, off.LabelPrefix = true, true, strings.Repeat("prefix", 20)
	for name, opts := range map[string]Options{"all": everything(), "little": {Period: 1}, "absences": off, "prometheus": prometheus} {
		t.Run(name, func(t *testing.T) {
			r := &made{differing: differing{publishing{put: func(m pcommon.Map) {
				m.PutInt("process.pid", 1)
				m.PutStr("service.name", strings.Repeat("s", 200))
			}}}}
			users := []*Builder{differingBuilder(opts, 400), differingBuilder(opts, 3)}
			b, wanted := newBuild(users, r, []uint64{1000, 1000}, 2000)
			b.serial = new(uint64)
			out, stats := b.fill(wanted)
			whole, samples := requestBytes(out), stats.Samples
			d := &division{b: b, sent: newSent(out.Dictionary(), opts.OffCPU != nil)}
			d.begin()
			processes := b.weighAll(wanted, out)
			for i := range processes {
				d.bytes += d.need(&processes[i], processes[i].entries)
			}
			require.GreaterOrEqual(t, d.bytes, whole)
			require.InEpsilon(t, whole, d.bytes, 0.08)

			for _, share := range []int{2, 5, 20} {
				r.made = 0
				requests, resources, got := 0, len(wanted), uint64(0)
				for p, stats := range Requests(users, r, []uint64{1000, 1000}, 2000, whole/share, new(uint64), nil) {
					require.LessOrEqual(t, requestBytes(p), whole/share)
					require.Zero(t, stats.TooLarge)
					requests++
					resources += stats.Resources
					got += stats.Samples
				}
				require.Equal(t, samples, got)
				require.Equal(t, resources, r.made, "each is made once, and all together")
				require.LessOrEqual(t, requests, 3*share)
			}
		})
	}
}

// made counts how often a process is made.
type made struct {
	differing
	made int
}

func (m *made) Resource(process uint64, attrs pcommon.Map) {
	m.made++
	m.differing.Resource(process, attrs)
}

// growing has longer names each time when it is asked, for so many times.
type growing struct {
	longNames
	times int
}

func (r *growing) Resource(process uint64, attrs pcommon.Map) {
	r.longNames.Resource(process, attrs)
	r.bytes[process] = 100 << min(r.made, r.times)
}

func (*growing) Wanted(process uint64, _ int) bool { return process == 1 }

// Names may come while requests are made: then these are divided again, and only what is too large by itself is lost, but
// not for ever.
func TestRequestsGrow(t *testing.T) {
	const entries, maxBytes = 400, 32 << 10
	for times, want := range map[int]struct {
		tooLarge bool
		made     int
	}{2: {false, 20}, 5: {false, 200}, 12: {true, 200}} {
		b, r := NewBuilder(everything()), &growing{longNames{bytes: map[uint64]int{}}, times}
		threads(b, 1, entries, 5, func(entry, i int) int { return entry * i % 200 })
		threads(b, 2, 5, 1, func(int, int) int { return 0 })
		_, stats := pieces(t, maxBytes, r, b)
		total := BuildStats{}
		for _, s := range stats {
			total.Samples += s.Samples
			total.TooLarge += s.TooLarge
			total.LeftOut += s.LeftOut
		}
		require.EqualValues(t, entries, total.Samples+total.TooLarge)
		require.EqualValues(t, 5, total.LeftOut)
		require.Equal(t, want.tooLarge, total.TooLarge > 0, times)
		require.LessOrEqual(t, r.made, want.made, times)
	}
}

// What is too large after divisions is halved: users apart, of whom each has so many halvings.
func TestHalves(t *testing.T) {
	b := &build{halvings: map[uint32]int{}}
	process := func(user uint32, entries int) []entryRef {
		list := make([]entryRef, entries)
		for i := range list {
			list[i] = entryRef{part: user, entry: uint32(i)}
		}
		return list
	}
	one, several, other := process(1, 1), process(1, 3), process(2, 1)
	require.Equal(t, [][][]entryRef{{one, several}, {other}}, b.halves([][]entryRef{one, several, other}))
	require.Nil(t, b.halves([][]entryRef{one}))
	require.Empty(t, b.halvings)
	require.Equal(t, [][][]entryRef{{one}, {several, several}}, b.halves([][]entryRef{one, several, several}))
	for range maxHalvings - 1 {
		require.Equal(t, [][][]entryRef{{several[:1]}, {several[1:]}}, b.halves([][]entryRef{several}))
	}
	require.Nil(t, b.halves([][]entryRef{several}))
	require.Len(t, b.halves([][]entryRef{several, other}), 2)
	require.Len(t, b.halves([][]entryRef{other, other}), 2)

	// Of many users the last one is apart soon, and nobody's processes are in two pieces.
	var groups [][]entryRef
	for user := range uint32(1000) {
		groups = append(groups, process(user, 1), process(user, 2))
	}
	times := 0
	for ; groups[0][0].part != 999; times++ {
		pieces := b.halves(groups)
		require.Len(t, pieces, 2)
		require.NotEqual(t, pieces[0][len(pieces[0])-1][0].part, pieces[1][0][0].part)
		groups = pieces[1]
	}
	require.LessOrEqual(t, times, 10)
	require.Len(t, groups, 2)
}
