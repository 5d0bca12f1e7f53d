package profile

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A program chooses how large its stacks, labels and resource are, and these come again in each request that has
// samples with them.
const (
	// leastRoomShare of a request is left to the samples of an entry. One that leaves less is too large.
	leastRoomShare = 16
	// requestsShare times as many requests are made of a user's samples, at most, as these would fill if what several of
	// them have came once. Further samples are too large.
	requestsShare = 16
)

// division shares out what is too large for one request to several, by what was made of it.
type division struct {
	b        *build
	sent     *sent
	maxBytes int
	pieces   [][][]entryRef
	tooLarge uint64 // samples that are in none

	piece [][]entryRef // at hand
	bytes int          // of it
	left  int          // pieces that the user at hand may have
}

// weighed is the entries of a process, with what was made of them.
type weighed struct {
	entries []madeEntry
	samples pprofile.SampleSlice
	profile pprofile.Profile // without its samples
	own     int              // bytes of that, and of the resource
}

// madeEntry is an entry with the index of its sample.
type madeEntry struct {
	entryRef
	sample int32
}

// user is the part of whose user a process is.
func (p *weighed) user() uint32 { return p.entries[0].part }

// divide makes several pieces of one that is too large, of which out was made last: those of users with little first.
// It returns how many samples are in none of them. out has no samples then.
func (b *build) divide(groups [][]entryRef, out pprofile.Profiles, maxBytes int) (pieces [][][]entryRef, tooLarge uint64) {
	d := &division{b: b, sent: newSent(out.Dictionary(), b.opts.OffCPU != nil), maxBytes: maxBytes}
	processes := b.weighAll(groups, out)
	perUser := d.perUser(processes)
	slices.SortStableFunc(processes, func(a, b weighed) int {
		x, y := a.user(), b.user()
		return cmp.Or(cmp.Compare(perUser[x], perUser[y]), cmp.Compare(x, y))
	})
	d.begin()
	for i := range processes {
		p := &processes[i]
		if i == 0 || processes[i-1].user() != p.user() {
			if perUser[p.user()] > maxBytes {
				d.begin()
			}
			d.left = requestsShare * (perUser[p.user()]/maxBytes + 1)
		}
		d.addProcess(p)
	}
	d.begin()
	return d.pieces, d.tooLarge
}

// weighAll takes the samples out of what was made last, by process.
func (b *build) weighAll(groups [][]entryRef, out pprofile.Profiles) []weighed {
	list, indexes := make([]weighed, len(groups)), b.sampleOf
	for i, entries := range groups {
		rp := out.ResourceProfiles().At(i)
		p := weighed{
			entries: make([]madeEntry, len(entries)), samples: pprofile.NewSampleSlice(),
			profile: rp.ScopeProfiles().At(0).Profiles().At(0),
		}
		p.profile.Samples().MoveAndAppendTo(p.samples)
		for j, entry := range entries {
			p.entries[j] = madeEntry{entry, indexes[j]}
		}
		indexes = indexes[len(entries):]
		p.own = new(pprofile.ProtoMarshaler).ResourceProfilesSize(rp) + mapStrings(rp.Resource().Attributes()) + sentLengthBytes
		list[i] = p
	}
	return list
}

// perUser returns how many bytes a request with all processes of each user would have.
func (d *division) perUser(processes []weighed) map[uint32]int {
	sums := map[uint32]int{}
	for i := range processes {
		user := processes[i].user()
		if _, ok := sums[user]; !ok {
			d.sent.next()
			sums[user] = d.sent.empty
		}
		sums[user] += d.need(&processes[i], processes[i].entries)
	}
	return sums
}

// need returns by how much the piece at hand grows by entries of a process that is not in it yet.
func (d *division) need(p *weighed, entries []madeEntry) int {
	bytes := p.own + d.sent.profile(p.profile)
	for _, e := range entries {
		bytes += d.needOf(p, e)
	}
	return bytes
}

// needOf returns by how much it grows by an entry of a process that is in it.
func (d *division) needOf(p *weighed, e madeEntry) int {
	return d.sent.sample(p.samples.At(int(e.sample)), int(e.to-e.from))
}

// begin begins a piece.
func (d *division) begin() {
	if len(d.piece) > 0 {
		d.pieces = append(d.pieces, d.piece)
		d.left--
	}
	d.sent.next()
	d.piece, d.bytes = nil, d.sent.empty
}

// put adds to the piece at hand what it grows by so many bytes by, if the user may have another piece.
func (d *division) put(bytes int, entries ...entryRef) {
	if d.left <= 0 {
		for _, e := range entries {
			d.tooLarge += uint64(e.to - e.from)
		}
		return
	}
	d.bytes += bytes
	d.piece = append(d.piece, entries)
}

// addProcess adds a process: whole if there is room in the piece at hand or in one of its own.
func (d *division) addProcess(p *weighed) {
	for range 2 {
		if bytes := d.need(p, p.entries); d.bytes+bytes <= d.maxBytes {
			entries := make([]entryRef, len(p.entries))
			for i, e := range p.entries {
				entries[i] = e.entryRef
			}
			d.put(bytes, entries...)
			return
		}
		d.begin()
	}
	d.addEntries(p)
}

// addEntries adds a process in several pieces. Entries of similar stacks come together, as they have most in common.
func (d *division) addEntries(p *weighed) {
	slices.SortStableFunc(p.entries, func(a, b madeEntry) int {
		return cmp.Or(cmp.Compare(a.part, b.part), cmp.Compare(d.b.key(a.entryRef).epoch, d.b.key(b.entryRef).epoch),
			strings.Compare(d.frames(a), d.frames(b)))
	})
	var group []entryRef
	var bytes int
	begin := func() {
		if len(group) > 0 {
			d.put(bytes, group...)
		}
		d.begin()
		group, bytes = nil, d.need(p, nil)
	}
	begin()
	for _, e := range p.entries {
		more := d.needOf(p, e)
		if len(group) > 0 && d.bytes+bytes+more > d.maxBytes {
			begin()
			more = d.needOf(p, e)
		}
		if len(group) == 0 {
			most := d.mostSamples(e, bytes+more)
			if most == 0 {
				d.tooLarge += uint64(e.to - e.from)
				begin()
				continue
			}
			for e.to-e.from > most {
				group = append(group, entryRef{e.part, e.entry, e.from, e.from + most})
				begin()
				e.from += most
				more = d.needOf(p, e)
			}
		}
		group = append(group, e.entryRef)
		bytes += more
	}
	begin()
}

// mostSamples returns how many samples of an entry fit in a request of their own, of which all would take so many bytes;
// none, if the entry leaves them too little room.
func (d *division) mostSamples(e madeEntry, bytes int) uint32 {
	room := d.maxBytes - d.bytes - bytes + int(e.to-e.from)*d.sent.time
	if room < d.maxBytes/leastRoomShare {
		return 0
	}
	return uint32(max(room/d.sent.time, 1))
}

// frames are those of the stack of an entry, encoded from the outermost.
func (d *division) frames(e madeEntry) string {
	return decodeStack(d.b.parts[e.part].stacks.stacks[d.b.key(e.entryRef).stack]).encoded
}
