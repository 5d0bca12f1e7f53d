package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
)

func TestOneSample(t *testing.T) {
	b := NewBuilder(everything())
	s := sample()
	b.Add(&s)
	p, stats := buildOne(b, &resolver{}, 1000, 2000)
	require.Equal(t, []flatSample{{
		process: 7,
		stack:   "kff10 kff20 u10 u20 u30",
		attrs: map[string]any{
			"thread.id": int64(8), "thread.name": "worker", "cpu.logical_number": int64(3),
			"trace_id": "01ab0000000000000000000000000000", "span_id": "02cd000000000000",
			"label.tenant": "a",
		},
		link:  linkA,
		times: []uint64{1500},
	}}, flatten(t, p))
	require.Equal(t, BuildStats{Resources: 1, Samples: 1}, stats)

	rp := p.ResourceProfiles().At(0)
	require.Equal(t, "scope", rp.ScopeProfiles().At(0).Scope().Name())
	require.Equal(t, "1", rp.ScopeProfiles().At(0).Scope().Version())
	profile, text := theProfile(t, rp), p.Dictionary().StringTable()
	require.Equal(t, "samples", text.At(int(profile.SampleType().TypeStrindex())))
	require.Equal(t, "count", text.At(int(profile.SampleType().UnitStrindex())))
	require.Equal(t, "cpu", text.At(int(profile.PeriodType().TypeStrindex())))
	require.Equal(t, "nanoseconds", text.At(int(profile.PeriodType().UnitStrindex())))
	require.Equal(t, int64(52_631_578), profile.Period())
	require.Equal(t, pcommon.Timestamp(startOf(1000, 0)), profile.Time())
	require.Equal(t, uint64(2000), uint64(profile.Time())+profile.DurationNano())
	require.False(t, profile.ProfileID().IsEmpty())
	require.Zero(t, profile.Samples().At(0).Values().Len())
}

// A thread that the reader's PID namespace does not show has no number.
func TestNoThreadNumber(t *testing.T) {
	b := NewBuilder(Options{ThreadID: true, Period: 1})
	s := sample()
	s.TID = 0
	b.Add(&s)
	p, _ := buildOne(b, &resolver{}, 1000, 2000)
	require.NotContains(t, flatten(t, p)[0].attrs, "thread.id")
}

// Each part of the key alone keeps samples apart, if it is to.
func TestAggregationKey(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Sample)
		never  func(*Options) // turns the distinction off
	}{
		"process":        {change: func(s *Sample) { s.Process++ }},
		"thread":         {func(s *Sample) { s.TID++ }, func(o *Options) { o.ThreadID = false }},
		"thread name":    {func(s *Sample) { s.Comm = []byte("worker2") }, func(o *Options) { o.ThreadName = false }},
		"CPU":            {func(s *Sample) { s.CPU++ }, func(o *Options) { o.CPUAttribute = false }},
		"kernel frame":   {change: func(s *Sample) { s.KernelFrames = []uint64{0xff10, 0xff22} }},
		"user frame":     {change: func(s *Sample) { s.UserFrames = []uint64{0x10, 0x21, 0x32} }},
		"depth":          {change: func(s *Sample) { s.UserFrames = []uint64{0x10, 0x21} }},
		"side of frames": {change: func(s *Sample) { s.KernelFrames, s.UserFrames = []uint64{0xff10}, []uint64{0xff21, 0x10, 0x21, 0x31} }},
		"label set":      {change: func(s *Sample) { s.Set = setB }},
		"no label set":   {change: func(s *Sample) { s.Set = nil }},
		"span":           {change: func(s *Sample) { s.Link = linkB }},
		"no link":        {change: func(s *Sample) { s.Link = labels.Link{} }},
		"sampled":        {func(s *Sample) { s.Sampled = SampledYes }, func(o *Options) { o.TraceAttributes = false }},
		"thread state":   {change: func(s *Sample) { s.State = record.ThreadSleeping }},
		"truncation":     {change: func(s *Sample) { s.UserStack = record.OutcomeTruncated }},
		"kernel cut":     {change: func(s *Sample) { s.KernelStack = record.OutcomeTruncated }},
		"lost frames":    {change: func(s *Sample) { s.UserStack = record.OutcomeNoRows }},
		"time":           {func(s *Sample) { s.TimeUnixNano++ }, func(*Options) {}},
		"other outcome":  {func(s *Sample) { s.UserStack = record.OutcomeCompat }, func(*Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			add := func(o Options) []flatSample {
				b := NewBuilder(o)
				first, second := sample(), sample()
				tc.change(&second)
				b.Add(&first)
				b.Add(&second)
				b.Add(&first)
				require.Equal(t, 3, b.Samples())
				flat := buildFlat(t, b)
				require.Equal(t, len(flat), len(b.entries))
				return flat
			}
			if name != "time" && name != "other outcome" {
				flat := add(everything())
				require.Len(t, flat, 2)
				require.Equal(t, []uint64{1500, 1500}, flat[0].times)
				require.Equal(t, []uint64{1500}, flat[1].times)
			}
			if tc.never != nil {
				o := everything()
				tc.never(&o)
				require.Len(t, add(o), 1)
			}
		})
	}
}

// What is not shown keeps no samples apart: a flag without a link, what is behind the end of
// a thread's name.
func TestAggregationKeyLeavesOut(t *testing.T) {
	b := NewBuilder(everything())
	for _, sampled := range []Sampled{SampledUnknown, SampledNo, SampledYes} {
		s := sample()
		s.Link, s.Sampled = labels.Link{}, sampled
		s.Comm = []byte{'a', 0, byte(sampled), 1}
		b.Add(&s)
	}
	require.Equal(t, 1, len(b.entries))
}

func TestOptionsLeaveOut(t *testing.T) {
	b := NewBuilder(Options{Period: 1})
	s := sample()
	b.Add(&s)
	flat := buildFlat(t, b)
	require.Equal(t, map[string]any{"tenant": "a"}, flat[0].attrs)
	require.Equal(t, linkA, flat[0].link, "the link is always there")
}

func TestAddCopies(t *testing.T) {
	b := NewBuilder(everything())
	s := sample()
	b.Add(&s)
	want := buildFlat(t, b)
	clear(s.Comm)
	clear(s.UserFrames)
	clear(s.KernelFrames)
	require.Equal(t, want, buildFlat(t, b))
}

func TestThreadName(t *testing.T) {
	for comm, want := range map[string]any{
		"":                    nil,
		"\x00junk":            nil,
		"worker\x00\x00\x00":  "worker",
		"worker\x00junk":      "worker",
		"0123456789abcdefXYZ": "0123456789abcdef",
		"bad\xff":             `bad\xff`,
		`C:\x`:                `C:\x`,
	} {
		b := NewBuilder(everything())
		s := sample()
		s.Comm = []byte(comm)
		b.Add(&s)
		require.Equal(t, want, buildFlat(t, b)[0].attrs["thread.name"], "%q", comm)
	}
}

func TestOneResourceForEachProcess(t *testing.T) {
	b := NewBuilder(everything())
	for _, process := range []uint64{5, 3, 5, 9, 3} {
		s := sample()
		s.Process = process
		b.Add(&s)
	}
	p, stats := buildOne(b, &resolver{}, 1000, 2000)
	flat := flatten(t, p)
	require.Len(t, flat, 3)
	require.Equal(t, []int64{5, 3, 9}, []int64{flat[0].process, flat[1].process, flat[2].process})
	require.Equal(t, 3, p.ResourceProfiles().Len())
	require.Equal(t, 3, stats.Resources)
	require.Equal(t, uint64(5), stats.Samples)
	require.Equal(t, 2, p.Dictionary().StackTable().Len(), "the dictionary is shared")
}

// A profile covers the interval, and timestamps of its process that lie outside; those of others do not move it.
func TestTimeRangeCoversTimestamps(t *testing.T) {
	const u = timesApart
	for name, tc := range map[string]struct {
		start, end uint64
		times      []uint64    // each of a process of its own
		want       [][2]uint64 // start and end
	}{
		"inside":     {1000, 2000, []uint64{1000, 1999}, [][2]uint64{{1000 * u, 2000 * u}, {1000 * u, 2000 * u}}},
		"at the end": {1000, 2000, []uint64{2000}, [][2]uint64{{1000 * u, 2000*u + 1}}},
		"after":      {1000, 2000, []uint64{1500, 2500}, [][2]uint64{{1000 * u, 2000 * u}, {1000 * u, 2500*u + 1}}},
		"before":     {1000, 2000, []uint64{1500, 900, 1600}, [][2]uint64{{1000 * u, 2000 * u}, {900 * u, 2000 * u}, {1000 * u, 2000 * u}}},
		"both":       {1000, 2000, []uint64{5000, 1}, [][2]uint64{{1000 * u, 5000*u + 1}, {1 * u, 2000 * u}}},
		"no range":   {1000, 1000, []uint64{1000}, [][2]uint64{{1000 * u, 1000*u + 1}}},
		"backwards":  {2000, 1000, []uint64{1500}, [][2]uint64{{1500 * u, 1500*u + 1}}},
		"absurd":     {1000, 2000, []uint64{math.MaxUint64 / u}, [][2]uint64{{1000 * u, math.MaxInt64 + 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(everything())
			for i, at := range tc.times {
				s := sample()
				s.Process, s.TimeUnixNano = uint64(i), at*u
				b.Add(&s)
			}
			p, _ := buildOne(b, &resolver{}, tc.start*u, tc.end*u)
			require.Empty(t, conformance.Check(p))
			for i, rp := range p.ResourceProfiles().All() {
				start, duration := uint64(theProfile(t, rp).Time()), theProfile(t, rp).DurationNano()
				require.Equal(t, tc.want[i][0]-uint64(i), start)
				require.Equal(t, tc.want[i][1], start+duration)
			}
		})
	}
}

// A process with samples of several users begins where the first of their intervals does.
func TestTimeRangeOfUsers(t *testing.T) {
	const u = timesApart
	early, late := NewBuilder(everything()), NewBuilder(everything())
	for process, of := range [][]*Builder{{early}, {late}, {early, late}} {
		for _, b := range of {
			s := sample()
			s.Process, s.TimeUnixNano = uint64(process), 1999*u
			b.Add(&s)
		}
	}
	begun := map[uint64]uint64{}
	for p := range Requests([]*Builder{early, late}, &resolver{}, []uint64{1000 * u, 1500 * u}, 2000*u, math.MaxInt, new(uint64), nil) {
		for i, rp := range p.ResourceProfiles().All() {
			process, _ := rp.Resource().Attributes().Get("process.pid")
			begun[uint64(process.Int())] = uint64(theProfile(t, rp).Time()) + uint64(i)
		}
	}
	require.Equal(t, map[uint64]uint64{0: 1000 * u, 1: 1500 * u, 2: 1000 * u}, begun)
}

func TestNoSamples(t *testing.T) {
	p, stats := buildOne(NewBuilder(everything()), &resolver{}, 1000, 2000)
	require.Zero(t, p.ResourceProfiles().Len())
	require.Zero(t, stats)
	require.Empty(t, conformance.Check(p))
}

func TestBuildLeavesTheBuilder(t *testing.T) {
	b := NewBuilder(everything())
	s := sample()
	b.Add(&s)
	first, firstStats := buildOne(b, &resolver{}, 1000, 2000)
	second, secondStats := buildOne(b, &resolver{}, 1000, 2000)
	require.Equal(t, flatten(t, first), flatten(t, second))
	require.Equal(t, firstStats, secondStats)
	require.NotEqual(t, theProfile(t, first.ResourceProfiles().At(0)).ProfileID(),
		theProfile(t, second.ResourceProfiles().At(0)).ProfileID())
	s.TimeUnixNano++
	b.Add(&s)
	require.Equal(t, []uint64{1500, 1501}, buildFlat(t, b)[0].times)
	require.Equal(t, []uint64{1500}, theProfile(t, first.ResourceProfiles().At(0)).Samples().At(0).TimestampsUnixNano().AsRaw(),
		"the output is independent of the Builder")
}

func TestReset(t *testing.T) {
	b := NewBuilder(everything())
	s := sample()
	b.Add(&s)
	other := sample()
	other.UserFrames = []uint64{0x90}
	b.Add(&other)
	bytes := b.Bytes()
	require.Positive(t, bytes)
	b.Reset()
	require.Zero(t, b.Samples())
	require.Zero(t, len(b.entries))
	require.Zero(t, b.Bytes())
	p, _ := buildOne(b, &resolver{}, 1000, 2000)
	require.Empty(t, conformance.Check(p))
	require.Equal(t, pprofile.NewProfiles().ResourceProfiles().Len(), p.ResourceProfiles().Len())

	b.Add(&other)
	flat := buildFlat(t, b)
	require.Len(t, flat, 1)
	require.Equal(t, "kff10 kff20 u90", flat[0].stack)
	require.Less(t, b.Bytes(), bytes, "the stack is known")
}

// What a burst took is given back.
func TestResetBoundsWhatIsKept(t *testing.T) {
	b := NewBuilder(everything())
	s := sample()
	s.UserFrames = make([]uint64, 1024)
	for b.Bytes() <= 2*keptBytes {
		s.UserFrames[0]++
		s.TID++
		b.Add(&s)
	}
	b.Reset()
	require.Empty(t, b.stacks.ids)
	require.Zero(t, b.stacks.bytes)
	require.Zero(t, cap(b.entries))
	require.Zero(t, cap(b.sampleTimes))

	// Many batches with stacks of their own, each of them small.
	for range 3000 {
		s.UserFrames[0]++
		b.Add(&s)
		b.Reset()
		require.LessOrEqual(t, b.stacks.bytes, keptBytes)
	}
	require.NotEmpty(t, b.stacks.ids)
}

func TestBytesFollowsMemory(t *testing.T) {
	b := NewBuilder(everything())
	s := sample()
	s.UserFrames = make([]uint64, 1000)
	b.Add(&s)
	one := b.Bytes()
	require.Greater(t, one, 1000, "a byte a frame at least")
	b.Add(&s)
	require.Equal(t, sampleBytes, b.Bytes()-one)
	s.TID++
	b.Add(&s)
	require.Equal(t, 2*sampleBytes+entryBytes, b.Bytes()-one)
}

func TestAddDoesNotAllocate(t *testing.T) {
	b := NewBuilder(everything())
	var batch []Sample
	for i := range 200 {
		s := sample()
		s.Process, s.TID = uint64(i%3), uint32(i%7)
		s.UserFrames = []uint64{uint64(i % 11), 0x21, 0x31}
		if i%2 == 0 {
			s.Set = setB
		}
		batch = append(batch, s)
	}
	addAll := func() {
		for i := range batch {
			b.Add(&batch[i])
		}
	}
	addAll()
	require.Zero(t, testing.AllocsPerRun(20, func() {
		b.Reset()
		addAll()
	}), "a batch like the one before")

	b.sampleEntries = slices.Grow(b.sampleEntries, 20_000)
	b.sampleTimes = slices.Grow(b.sampleTimes, 20_000)
	require.Zero(t, testing.AllocsPerRun(20, addAll), "known keys")
}

func TestAgainstReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sets := []*labels.Set{nil, labels.Decode(nil, nil).Set, setA, setB,
		labels.NewSet(true, labels.Label{Key: "tenant", Value: "a", Source: record.ABIV1}),
		labels.NewSet(false, labels.Label{Key: "tenant", Value: "a", Source: record.ABIV0}),
		labels.NewSet(false, labels.Label{Key: "", Value: "", Source: record.ABIV0})}
	frames := func(base uint64) []uint64 {
		var f []uint64
		for range r.IntN(3) {
			f = append(f, base+uint64(r.IntN(2)))
		}
		return f
	}
	for round := range 60 {
		opts := Options{
			Period: 1, LabelPrefix: "label.", TraceAttributes: round&1 != 0,
			ThreadID: round&2 != 0, CPUAttribute: round&4 != 0, ThreadName: round&8 != 0,
		}
		b, want := NewBuilder(opts), &reference{opts, map[string]*flatSample{}}
		for range 200 {
			s := Sample{
				Process: uint64(r.IntN(2)), TimeUnixNano: 1000 + uint64(r.IntN(1000)),
				TID: uint32(r.IntN(2)), Comm: []byte([]string{"", "a", "b"}[r.IntN(3)]), CPU: uint32(r.IntN(2)),
				KernelFrames: frames(0xff00), UserFrames: frames(0x10),
				Set: sets[r.IntN(len(sets))], Link: []labels.Link{{}, linkA, linkB}[r.IntN(3)],
				KernelStack: []record.Outcome{record.OutcomeNone, record.OutcomePresent, record.OutcomeFault, record.OutcomeTruncated}[r.IntN(4)],
				UserStack:   record.Outcome(r.IntN(record.NumOutcomes)),
			}
			b.Add(&s)
			want.add(&s)
		}
		p, stats := buildOne(b, &resolver{}, 1000, 2000)
		require.Equal(t, uint64(200), stats.Samples)
		flat := flatten(t, p)
		var expected []flatSample
		for _, f := range want.samples {
			expected = append(expected, *f)
		}
		for _, list := range [][]flatSample{flat, expected} {
			for _, f := range list {
				slices.Sort(f.times)
			}
		}
		require.Equal(t, sorted(expected), sorted(flat))
	}
}
