package profile

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Requests yields what was added to Builders of the same options, at least one, since their last Reset, and leaves it
// there: in pieces of at most maxBytes each, as they are sent, with what is in each. startsUnixNano says when the interval
// of each Builder begins. The profile of a process covers from the first of these of the Builders that have samples of it
// to endUnixNano, widened where timestamps of its own lie outside. Without samples of wanted processes there are none.
//
// Mostly there is one piece. Else the users with little come first and together, and each user with more than one
// request has requests of its own: what a user's processes are called or publish does not move the others' samples. A
// process comes in several pieces if it must, and so does an entry that has many samples. A single entry that leaves its
// samples too little room is left out; they are counted in a piece without profiles.
//
// What the tables of a piece take beside [Builder.OutputBytes] is known when they are filled: hold is told then how many
// bytes more, or less, there are. nil: nobody is told.
//
// serial counts the profiles that are yielded. Of as many as timesApart says no two begin at one time, which who has
// counted them together may rely on, whatever is in which call.
func Requests(
	builders []*Builder, r Resolver, startsUnixNano []uint64, endUnixNano uint64, maxBytes int, serial *uint64, hold func(bytes int),
) iter.Seq2[pprofile.Profiles, BuildStats] {
	return func(yield func(pprofile.Profiles, BuildStats) bool) {
		b, wanted := newBuild(builders, r, startsUnixNano, endUnixNano)
		b.serial, b.hold = serial, hold
		defer b.release()
		b.request(wanted, maxBytes, yield)
	}
}

// request yields entries as one piece, or as several.
func (b *build) request(groups [][]entryRef, maxBytes int, yield func(pprofile.Profiles, BuildStats) bool) bool {
	out, stats := b.fill(groups)
	bytes := requestBytes(out)
	if bytes <= maxBytes {
		*b.serial += uint64(stats.Resources)
		return yield(out, stats)
	}
	pieces := b.divide(weigh(groups, out, bytes), maxBytes)
	if len(pieces) == 0 {
		return yield(pprofile.NewProfiles(), BuildStats{TooLarge: stats.Samples, LeftOut: stats.LeftOut})
	}
	b.stats.LeftOut = stats.LeftOut // for the first piece
	for _, piece := range pieces {
		if !b.request(piece, maxBytes, yield) {
			return false
		}
	}
	return true
}

// timesApart is within how many profiles no two begin at one time, in ns.
const timesApart = 1 << 17

// startOf returns when a profile begins: a little before what it is of, each at a time of its own, and not at 0, which
// means not known.
func startOf(start, serial uint64) uint64 {
	start -= start % timesApart
	return max(start-min(serial%timesApart, start), 1)
}

// weighed is the entries of a process and what they take of a request.
type weighed struct {
	entries []entryRef
	bytes   int
}

// weigh shares out what a request takes: to each process its resource and its samples, and
// as much of the dictionary as it has of all entries.
func weigh(groups [][]entryRef, out pprofile.Profiles, bytes int) []weighed {
	list := make([]weighed, len(groups))
	shared, entries := bytes, 0
	for i, group := range groups {
		rp := out.ResourceProfiles().At(i)
		own := new(pprofile.ProtoMarshaler).ResourceProfilesSize(rp) + mapStrings(rp.Resource().Attributes())
		list[i] = weighed{group, own}
		shared -= own
		entries += len(group)
	}
	for i := range list {
		list[i].bytes += max(shared, 0) * len(list[i].entries) / entries
	}
	return list
}

// roomShare of a request is filled by what processes are weighed to take: a dictionary of
// some of them is more than their part of the dictionary of all.
const roomShare = 4

// divide makes several pieces of one that is too large, each of which has less than all; none, if
// it cannot be divided.
func (b *build) divide(processes []weighed, maxBytes int) (pieces [][][]entryRef) {
	room := max(maxBytes-maxBytes/roomShare, 1)
	switch {
	case len(processes) == 1 && len(processes[0].entries) == 1:
		return b.divideSamples(processes[0].entries[0], maxBytes)
	case len(processes) == 1:
		return divideEntries(processes[0], room)
	}
	perUser := map[uint32]int{} // by part, of which each is a user's
	for _, p := range processes {
		perUser[p.entries[0].part] += p.bytes
	}
	slices.SortStableFunc(processes, func(a, b weighed) int {
		x, y := a.entries[0].part, b.entries[0].part
		return cmp.Or(cmp.Compare(perUser[x], perUser[y]), cmp.Compare(x, y))
	})
	var piece [][]entryRef
	left := room
	for i, p := range processes {
		part := p.entries[0].part
		begins := i > 0 && processes[i-1].entries[0].part != part && perUser[part] > room
		if len(piece) > 0 && (p.bytes > left || begins) {
			pieces = append(pieces, piece)
			piece, left = nil, room
		}
		piece = append(piece, p.entries)
		left -= p.bytes
	}
	if pieces = append(pieces, piece); len(pieces) == 1 {
		half := len(piece) / 2
		return [][][]entryRef{piece[:half], piece[half:]}
	}
	return pieces
}

// divideEntries divides those of one process, of which each piece has the resource.
func divideEntries(p weighed, room int) (pieces [][][]entryRef) {
	n := max((len(p.entries)+p.bytes/room)/(p.bytes/room+1), 1)
	if n == len(p.entries) {
		n = len(p.entries) / 2
	}
	for piece := range slices.Chunk(p.entries, n) {
		pieces = append(pieces, [][]entryRef{piece})
	}
	return pieces
}

// What a sample of an entry takes at most when it is sent, and what the lengths of all that it is
// in grow by when it has more of them.
const (
	sentTimeBytes   = 8
	sentValueBytes  = binary.MaxVarintLen64
	sentLengthBytes = 6 * binary.MaxVarintLen32
)

// leastRoomShare of a request is left to the samples of an entry that is divided by them: its stack,
// labels and resource come again in each piece, and a program chooses how large they are.
const leastRoomShare = 16

// divideSamples divides an entry by its samples, of which each piece has as many as it has room for;
// not if that is too little.
func (b *build) divideSamples(e entryRef, maxBytes int) (pieces [][][]entryRef) {
	bare := e
	bare.to = bare.from
	out, _ := b.fill([][]entryRef{{bare}})
	room := maxBytes - requestBytes(out) - sentLengthBytes
	if e.to-e.from == 1 || room < maxBytes/leastRoomShare {
		return nil
	}
	each := sentTimeBytes
	if b.opts.OffCPU != nil {
		each += sentValueBytes
	}
	n := uint32(max(min(room/each, int(e.to-e.from)/2), 1))
	for from := e.from; from < e.to; from += n {
		piece := e
		piece.from, piece.to = from, min(from+n, e.to)
		pieces = append(pieces, [][]entryRef{{piece}})
	}
	return pieces
}

// referenceBytes is what a string takes at most if it is sent as a place in the table of
// strings, in addition to what it takes itself: that is how the strings of attributes leave.
const referenceBytes = 8

// requestBytes bounds what profiles take when they are sent: with the strings of resources in the
// table of strings, in their places, or both, as the extension inline_strings sends them.
func requestBytes(p pprofile.Profiles) int {
	bytes := new(pprofile.ProtoMarshaler).ProfilesSize(p) + referenceBytes*p.Dictionary().AttributeTable().Len()
	for _, rp := range p.ResourceProfiles().All() {
		bytes += mapStrings(rp.Resource().Attributes())
	}
	return bytes
}

// mapStrings bounds what the strings of attributes take in the table of strings, in bytes.
func mapStrings(m pcommon.Map) (n int) {
	for k, v := range m.All() {
		n += referenceBytes + len(k) + valueStrings(v)
	}
	return n
}

func valueStrings(v pcommon.Value) (n int) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		n = referenceBytes + len(v.Str())
	case pcommon.ValueTypeMap:
		n = mapStrings(v.Map())
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			n += valueStrings(item)
		}
	}
	return n
}
