package profile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
)

// pieces are the requests of Builders, as many bytes long as they are when they are sent.
func pieces(t *testing.T, maxBytes int, r Resolver, builders ...*Builder) (samples [][]flatSample, stats []BuildStats) {
	t.Helper()
	for p, s := range Requests(builders, r, slices.Repeat([]uint64{1000}, len(builders)), 2000, maxBytes, new(uint64), nil) {
		flat := []flatSample{}
		if s.Samples > 0 {
			flat = flatten(t, p)
			estimate := requestBytes(p)
			references, both := sentBytes(t, p)
			require.LessOrEqual(t, max(references, both), maxBytes)
			require.LessOrEqual(t, max(references, both), estimate)
		}
		samples, stats = append(samples, flat), append(stats, s)
	}
	return samples, stats
}

// sentBytes are what profiles take when they are sent: with the strings of resources in the table
// of strings, and in their places too, as the extension inline_strings sends them. They are changed.
func sentBytes(t *testing.T, p pprofile.Profiles) (references, both int) {
	t.Helper()
	sent, err := new(pprofile.ProtoMarshaler).MarshalProfiles(p)
	require.NoError(t, err)
	resolved, err := new(pprofile.ProtoUnmarshaler).UnmarshalProfiles(sent)
	require.NoError(t, err)
	return len(sent), new(pprofile.ProtoMarshaler).ProfilesSize(resolved)
}

// of makes a Builder of one user, whose processes have samples with so many stacks each.
func of(processes []uint64, stacks int) *Builder {
	b := NewBuilder(everything())
	for _, process := range processes {
		for i := range stacks {
			s := sample()
			s.Process, s.UserFrames = process, []uint64{0x10, uint64(i + 1)}
			b.Add(&s)
		}
	}
	return b
}

func processesOf(samples []flatSample) (list []int64) {
	for _, s := range samples {
		if n := len(list); n == 0 || list[n-1] != s.process {
			list = append(list, s.process)
		}
	}
	return list
}

// What fits is one request; what does not is split so that users with little are together,
// and not with the user who has much.
func TestRequests(t *testing.T) {
	const large = 20_000 // twice the string: in its place and in the table
	r := &resolver{resource: func(process uint64, attrs pcommon.Map) {
		if process >= 100 {
			attrs.PutStr(fmt.Sprint("large", process), strings.Repeat(string(rune('a'+process%26)), large/2))
		}
	}}
	var flood []uint64
	for i := range uint64(30) {
		flood = append(flood, 100+i)
	}
	builders := []*Builder{of([]uint64{1, 2}, 3), of(flood, 2), of([]uint64{3}, 5)}
	whole, stats := buildAll(builders, r, 1000, 2000)
	want := flatten(t, whole)

	samples, _ := pieces(t, 1<<20, r, builders...)
	require.Len(t, samples, 1)
	require.ElementsMatch(t, want, samples[0])

	samples, got := pieces(t, 5*large, r, builders...)
	require.Equal(t, []int64{3, 1, 2}, processesOf(samples[0]), "those with little, first")
	var all []flatSample
	total := BuildStats{}
	for i, s := range samples {
		all = append(all, s...)
		total.Samples += got[i].Samples
		total.Resources += got[i].Resources
		require.Zero(t, got[i].TooLarge)
	}
	require.ElementsMatch(t, want, all)
	require.Equal(t, stats.Samples, total.Samples)
	require.Equal(t, stats.Resources, total.Resources, "processes are whole")
	require.LessOrEqual(t, len(samples), 15, "not one for each process")
}

// A process is split if it must.
func TestRequestsOfOneProcess(t *testing.T) {
	b := of([]uint64{7, 8}, 400)
	r := &resolver{unwanted: 9}
	left := of([]uint64{9}, 5)
	samples, stats := pieces(t, 8<<10, r, b, left)
	require.Greater(t, len(samples), 4)
	n, leftOut := 0, uint64(0)
	for i := range stats {
		n += len(samples[i])
		leftOut += stats[i].LeftOut
		require.Zero(t, stats[i].TooLarge)
	}
	require.Equal(t, 800, n)
	require.EqualValues(t, 5, leftOut)
}

// Backends keep one of several profiles of equal labels and time, and do not keep what tells processes apart: no two
// profiles begin at one time, in one piece, several, or several calls.
func TestProfilesBeginApart(t *testing.T) {
	const start, end = 8000 * timesApart, 9000 * timesApart
	b := NewBuilder(everything())
	for i := range 300 {
		s := sample()
		s.Process, s.TimeUnixNano, s.UserFrames = uint64(1+i%3*i), start+uint64(i), []uint64{uint64(i)}
		if i%4 == 0 {
			s.TimeUnixNano = start - uint64(i) // its profile begins before
		}
		b.Add(&s)
	}
	begun := map[uint64]bool{}
	serial := uint64(timesApart - 10)
	profiles := func(maxBytes int) (n int) {
		for p := range Requests([]*Builder{b}, &resolver{}, []uint64{start}, end, maxBytes, &serial, nil) {
			require.Empty(t, conformance.Check(p))
			for _, rp := range p.ResourceProfiles().All() {
				one := theProfile(t, rp)
				at := uint64(one.Time())
				require.False(t, begun[at], "%d", at)
				require.Greater(t, at, uint64(start-2*timesApart))
				require.EqualValues(t, end, at+one.DurationNano())
				begun[at] = true
				n++
			}
		}
		return n
	}
	whole := profiles(1 << 20)
	require.Greater(t, profiles(4<<10), whole, "a process is split")
	require.Equal(t, whole, profiles(1<<20))
	require.EqualValues(t, len(begun), serial-(timesApart-10), "what is made in vain does not count")
}

// many is a Builder of absences with so many samples of one entry, and one of another.
func many(samples int) *Builder {
	b := NewBuilder(offCPUOptions())
	for i := range samples {
		s := sample()
		s.TimeUnixNano, s.OffCPUNs = uint64(1000+i), int64(i)<<20
		b.Add(&s)
	}
	other := sample()
	other.TID++
	b.Add(&other)
	return b
}

// An entry with many samples comes in several pieces, which have each of its samples once, with
// its value, and all else that the entry has.
func TestRequestsOfOneEntry(t *testing.T) {
	const n = 3000
	b := many(n)
	p, _ := buildOne(b, &resolver{}, 1000, 2000)
	whole := flatten(t, p)[0]
	values := map[uint64]int64{}
	requests := 0
	for p, stats := range Requests([]*Builder{b}, &resolver{}, []uint64{1000}, 2000, 8<<10, new(uint64), nil) {
		requests++
		require.Zero(t, stats.TooLarge)
		require.LessOrEqual(t, requestBytes(p), 8<<10)
		samples := theProfile(t, p.ResourceProfiles().At(0)).Samples()
		for i, flat := range flatten(t, p) {
			if flat.attrs["thread.id"] != whole.attrs["thread.id"] {
				continue
			}
			times := flat.times
			flat.times = whole.times
			require.Equal(t, whole, flat)
			require.Len(t, times, samples.At(i).Values().Len())
			for j, time := range times {
				_, twice := values[time]
				require.False(t, twice)
				values[time] = samples.At(i).Values().At(j)
			}
		}
	}
	require.Len(t, values, n)
	for i := range n {
		require.Equal(t, int64(i)<<20, values[uint64(1000+i)])
	}
	require.Less(t, requests, 10, "not one for each sample")
}

// An entry that leaves its samples too little room is lost, with all of them, and nothing else.
func TestRequestsTooLarge(t *testing.T) {
	for name, filled := range map[string]int{"all": 8 << 10, "nearly all": 7 << 10} {
		t.Run(name, func(t *testing.T) {
			r := &resolver{unwanted: 9, frames: map[uint64]Frame{0x77: {Lines: []Line{{Function: strings.Repeat("f", filled)}}}}}
			b := of([]uint64{7, 9}, 5)
			for range 3000 {
				s := sample()
				s.UserFrames = []uint64{0x77}
				b.Add(&s)
			}
			_, stats := pieces(t, 8<<10, r, b)
			total := BuildStats{}
			for _, s := range stats {
				total.Samples += s.Samples
				total.TooLarge += s.TooLarge
				total.LeftOut += s.LeftOut
			}
			require.Equal(t, [3]uint64{5, 3000, 5}, [3]uint64{total.Samples, total.TooLarge, total.LeftOut})
		})
	}
}

// Where all is too large, what was left out is counted all the same.
func TestRequestsAllTooLarge(t *testing.T) {
	b := of([]uint64{7, 9}, 5)
	r := &resolver{unwanted: 9, resource: func(_ uint64, attrs pcommon.Map) { attrs.PutStr("large", strings.Repeat("x", 8<<10)) }}
	samples, stats := pieces(t, 8<<10, r, b)
	require.Equal(t, [][]flatSample{{}}, samples)
	require.Equal(t, []BuildStats{{TooLarge: 5, LeftOut: 5}}, stats)
}

// Where a piece turns out to be too large, what was left out is not counted with the next one again.
func TestRequestsLeftOutOnce(t *testing.T) {
	made := 0
	r := &resolver{unwanted: 9, resource: func(_ uint64, attrs pcommon.Map) {
		if made++; made == 3 { // of the first piece, after both together
			attrs.PutStr("grown", strings.Repeat("x", 2<<10))
		}
		attrs.PutStr("large", strings.Repeat("x", 3<<10))
	}}
	_, stats := pieces(t, 8<<10, r, of([]uint64{7, 8, 9}, 5))
	require.Len(t, stats, 2)
	require.Equal(t, BuildStats{TooLarge: 5, LeftOut: 5}, stats[0])
	require.EqualValues(t, 5, stats[1].Samples)
	require.Zero(t, stats[1].LeftOut)
}

// Strings that are short take more as places in a table than they do as strings, and all may be
// sent in both.
func TestRequestBytes(t *testing.T) {
	r := &resolver{resource: func(_ uint64, attrs pcommon.Map) {
		attrs.PutBool(strings.Repeat("k", 100_000), true)
		list := attrs.PutEmptySlice("list")
		for i := range 5000 {
			list.AppendEmpty().SetEmptyMap().PutStr(fmt.Sprint(i), fmt.Sprint(-i))
		}
	}}
	p, _ := buildAll([]*Builder{of([]uint64{1}, 1)}, r, 1000, 2000)
	bound, plain := requestBytes(p), new(pprofile.ProtoMarshaler).ProfilesSize(p)
	references, both := sentBytes(t, p)
	require.Greater(t, references, plain)
	require.Greater(t, both, references)
	require.LessOrEqual(t, both, bound)
}

// Who takes no more requests gets none.
func TestRequestsStop(t *testing.T) {
	n := 0
	for range Requests([]*Builder{of([]uint64{7, 8}, 400)}, &resolver{}, []uint64{1000}, 2000, 8<<10, new(uint64), nil) {
		n++
		break
	}
	require.Equal(t, 1, n)
}
