package profile

import (
	"iter"

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
// process comes in several pieces if it must, and so does an entry that has many samples. What is made is bounded by how
// much was added, whatever stacks and labels are: an entry that leaves its samples too little room is left out, and so is
// what would take a user far more requests than all that he has would fill. These samples are counted in a piece without
// profiles.
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
		defer b.tell(0)
		b.request(wanted, maxBytes, maxDivisions, yield)
	}
}

// What is too large is divided into pieces, which are weighed by what was made before, and larger where names have come
// since.
const (
	// maxDivisions of what is too large by weight: into pieces, and of these.
	maxDivisions = 2
	// maxHalvings in a call of what still is, for each user.
	maxHalvings = 64
)

// request yields entries as one piece, or as several, which may be divided by weight so many times.
func (b *build) request(groups [][]entryRef, maxBytes, divisions int, yield func(pprofile.Profiles, BuildStats) bool) bool {
	out, stats := b.fill(groups)
	if requestBytes(out) <= maxBytes {
		*b.serial += uint64(stats.Resources)
		return yield(out, stats)
	}
	var pieces [][][]entryRef
	var tooLarge uint64
	if divisions > 0 {
		pieces, tooLarge = b.divide(groups, out, maxBytes)
	} else if pieces = b.halves(groups); pieces == nil {
		tooLarge = stats.Samples
	}
	b.stats.LeftOut = stats.LeftOut // for the first piece
	for _, piece := range pieces {
		if !b.request(piece, maxBytes, max(divisions-1, 0), yield) {
			return false
		}
	}
	if tooLarge == 0 {
		return true
	}
	stats = BuildStats{TooLarge: tooLarge, LeftOut: b.stats.LeftOut}
	b.stats.LeftOut = 0
	return yield(pprofile.NewProfiles(), stats)
}

// halves makes two pieces of one: of its users, of the processes of a single one, or of the entries of a single process.
// There are none of a single entry, and if the user has had as many as there may be.
func (b *build) halves(groups [][]entryRef) [][][]entryRef {
	if at := betweenUsers(groups); at > 0 {
		return [][][]entryRef{groups[:at], groups[at:]}
	}
	first := groups[0]
	user := first[0].part
	if b.halvings[user] == maxHalvings || len(groups) == 1 && len(first) == 1 {
		return nil
	}
	b.halvings[user]++
	if len(groups) > 1 {
		return [][][]entryRef{groups[:len(groups)/2], groups[len(groups)/2:]}
	}
	return [][][]entryRef{{first[:len(first)/2]}, {first[len(first)/2:]}}
}

// betweenUsers returns where, next to the middle, the processes of one user end and those of another begin: the processes
// of a user come together. It is 0 if all are of one user.
func betweenUsers(groups [][]entryRef) int {
	middle := len(groups) / 2
	for distance := range middle + 1 {
		for _, at := range []int{middle - distance, middle + distance} {
			if at > 0 && at < len(groups) && groups[at-1][0].part != groups[at][0].part {
				return at
			}
		}
	}
	return 0
}

// timesApart is within how many profiles no two begin at one time, in ns.
const timesApart = 1 << 17

// startOf returns when a profile begins: a little before what it is of, each at a time of its own, and not at 0, which
// means not known.
func startOf(start, serial uint64) uint64 {
	start -= start % timesApart
	return max(start-min(serial%timesApart, start), 1)
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
