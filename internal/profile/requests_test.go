package profile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// pieces are the requests of Builders, as many bytes long as they are when they are sent.
func pieces(t *testing.T, maxBytes int, r Resolver, builders ...*Builder) (samples [][]flatSample, stats []BuildStats) {
	t.Helper()
	for p, s := range Requests(builders, r, 1000, 2000, maxBytes) {
		flat := []flatSample{}
		if s.Samples > 0 {
			flat = flatten(t, p)
			estimate := requestBytes(p)
			sent, err := new(pprofile.ProtoMarshaler).MarshalProfiles(p)
			require.NoError(t, err)
			require.LessOrEqual(t, len(sent), maxBytes)
			require.LessOrEqual(t, len(sent), estimate)
		}
		samples, stats = append(samples, flat), append(stats, s)
	}
	return samples, stats
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
	const large = 20_000
	r := &resolver{resource: func(process uint64, attrs pcommon.Map) {
		if process >= 100 {
			attrs.PutStr(fmt.Sprint("large", process), strings.Repeat(string(rune('a'+process%26)), large))
		}
	}}
	var flood []uint64
	for i := range uint64(30) {
		flood = append(flood, 100+i)
	}
	builders := []*Builder{of([]uint64{1, 2}, 3), of(flood, 2), of([]uint64{3}, 5)}
	whole, stats := Build(builders, r, 1000, 2000)
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

// A process is split if it must; an entry that is too large is lost, and nothing else.
func TestRequestsOfOneProcess(t *testing.T) {
	b := of([]uint64{7, 8}, 400)
	whole := b.opts
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

	one := NewBuilder(whole)
	for range 3000 { // timestamps of one entry
		s := sample()
		one.Add(&s)
	}
	other := sample()
	other.TID++
	one.Add(&other)
	samples, stats = pieces(t, 8<<10, &resolver{}, one)
	sent, lost := uint64(0), uint64(0)
	for i := range stats {
		sent += stats[i].Samples
		lost += stats[i].TooLarge
	}
	require.EqualValues(t, 1, sent, "%v", samples)
	require.EqualValues(t, 3000, lost)
}

// Strings that are short take more as places in a table than they do as strings.
func TestRequestBytes(t *testing.T) {
	r := &resolver{resource: func(_ uint64, attrs pcommon.Map) {
		list := attrs.PutEmptySlice("list")
		for i := range 5000 {
			list.AppendEmpty().SetEmptyMap().PutStr(fmt.Sprint(i), fmt.Sprint(-i))
		}
	}}
	p, _ := Build([]*Builder{of([]uint64{1}, 1)}, r, 1000, 2000)
	bound, plain := requestBytes(p), new(pprofile.ProtoMarshaler).ProfilesSize(p)
	sent, err := new(pprofile.ProtoMarshaler).MarshalProfiles(p)
	require.NoError(t, err)
	require.Greater(t, len(sent), plain)
	require.LessOrEqual(t, len(sent), bound)
}

// Who takes no more requests gets none.
func TestRequestsStop(t *testing.T) {
	n := 0
	for range Requests([]*Builder{of([]uint64{7, 8}, 400)}, &resolver{}, 1000, 2000, 8<<10) {
		n++
		break
	}
	require.Equal(t, 1, n)
}
