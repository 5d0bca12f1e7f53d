package profile

import (
	"crypto/rand"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Resolver tells a Builder what it does not know itself. It is called while
// Requests runs, once for each process and for each different frame.
type Resolver interface {
	// Wanted tells whether the samples of a process are to be in the output. It is
	// called before the rest, with the number of its samples; those of a process that
	// is not wanted leave no trace there but BuildStats.LeftOut.
	Wanted(process uint64, samples int) bool
	// Resource fills the resource attributes of a process.
	Resource(process uint64, attrs pcommon.Map)
	// Epoch returns the first of the epochs of a process in which all addresses are
	// described alike: each is asked for once.
	Epoch(process uint64, epoch uint32) uint32
	// Expect says which user addresses of a process Frame may be asked for next, in an epoch that Epoch has
	// returned. There may be some of them twice. The slice belongs to the callee until it returns.
	Expect(process uint64, epoch uint32, addrs []uint64)
	// Frame describes an address in such an epoch. It is already inside of the instruction
	// that was executed. Kernel addresses are asked for once, with any process.
	Frame(process uint64, epoch uint32, kind FrameKind, addr uint64) Frame
	// RuntimeFrame describes a frame of a language runtime.
	RuntimeFrame(process uint64, word record.RuntimeWord, object uint64) Frame
}

// BuildStats says what is in the output. Counts of labels are by sample: a
// label of an entry with ten timestamps counts ten times. Attributes of a resource
// that Options.PrometheusNames changes or leaves out count as labels, once.
type BuildStats struct {
	Resources     int // ResourceProfiles, one a process
	Samples       uint64
	LeftOut       uint64 // samples of processes that are not wanted
	EscapedKeys   uint64 // labels with a key that is not UTF-8, or has a \x, or is none for Prometheus
	RenamedKeys   uint64 // labels whose name another attribute has
	DroppedLabels uint64 // labels whose name another label of the set has
	TooLarge      uint64 // samples that no request has room for (Requests)
}

// build is the state of one call of Requests.
type build struct {
	opts     *Options
	resolver Resolver
	tables   *tables
	stats    BuildStats
	parts    []part

	end       uint64  // of the interval
	serial    *uint64 // of the next profile that is handed over
	sets      map[*labels.Set]setAttributes
	reserved  map[string]bool        // names of ours, as same returns them
	names     map[string]bool        // scratch of setAttributes
	kernel    map[uint64]int32       // locations by address
	standIn   int32                  // location of tooManyFrames; 0: there is none
	decided   bool                   // which frames have a location: all was built once
	halvings  map[uint32]int         // by user, of what was too large after divisions
	keptOf    map[uint64]*frameTable // of processes that lack frames, when all was built
	sampleOf  []int32                // by entry, in the order of what was made last: index of its sample in the profile
	keptBytes int                    // of keptOf, beside what is made next
	hold      func(bytes int)        // nil: nobody is told
	held      int                    // what it has been told of

	// Of the process at hand.
	process    uint64
	ofResource map[string]bool  // names of its resource, with Options.PrometheusNames
	frameTable                  // of its frames
	kept       *frameTable      // frames that had a location when all was built; nil: all have one
	lacks      bool             // some of its entries lack frames
	spare      map[uint64]int32 // empty, for the next epoch; may be nil
	stackOf    map[stackRef]builtStack
	samples    map[string]int32 // indexes
	identity   []byte
	indexes    []int32
	resolved   string // encoding of the stack that locations are of, in epoch
	epoch      uint32
	inEpoch    map[uint64]int32 // of user; nil: no stack of the process was resolved
	crowded    bool             // of it, frames that are not known are left out
	admitted   int              // frames of it that were not known
	locations  []int32          // from the outermost
	expected   []uint64
}

// part is a Builder of several.
type part struct {
	*Builder
	start  uint64     // when its interval begins
	times  [][]uint64 // by entry
	values [][]int64  // by entry; empty unless of absences
	frames int        // that had room: different ones of each process
}

// entryRef is an entry of a part, with the samples [from, to) of it; stackRef is a stack.
type entryRef struct{ part, entry, from, to uint32 }

type stackRef struct{ part, stack, epoch uint32 }

// newBuild prepares for what was added to Builders, and returns the entries of wanted
// processes.
func newBuild(builders []*Builder, r Resolver, startsUnixNano []uint64, endUnixNano uint64) (b *build, wanted [][]entryRef) {
	b = &build{
		opts: &builders[0].opts, resolver: r, end: endUnixNano,
		reserved: map[string]bool{}, names: map[string]bool{}, ofResource: map[string]bool{},
		halvings: map[uint32]int{}, keptOf: map[uint64]*frameTable{},
	}
	for _, name := range ours() {
		b.reserved[b.same(name)] = true
	}
	for i, of := range builders {
		of.lackingFrames = 0
		b.parts = append(b.parts, part{
			Builder: of, start: startsUnixNano[i], times: byEntry(of, of.sampleTimes), values: byEntry(of, of.sampleValues),
		})
	}
	wanted = b.wanted(b.entriesByProcess())
	return b, wanted
}

// fill makes profiles of entries, which are those of a process together.
func (b *build) fill(groups [][]entryRef) (pprofile.Profiles, BuildStats) {
	b.release() // what was made before has been handed over, or is made anew
	out := pprofile.NewProfiles()
	b.tables = newTables(out.Dictionary())
	b.sets = make(map[*labels.Set]setAttributes)
	b.kernel = make(map[uint64]int32)
	b.standIn = 0
	b.sampleOf = b.sampleOf[:0]
	for i, entries := range groups {
		b.addProcess(out.ResourceProfiles().AppendEmpty(), entries, *b.serial+uint64(i))
	}
	b.decide()
	stats := b.stats
	b.stats = BuildStats{}
	return out, stats
}

func (b *build) key(e entryRef) *key { return &b.parts[e.part].entries[e.entry] }

func (b *build) times(e entryRef) []uint64 { return b.parts[e.part].times[e.entry][e.from:e.to] }

// values are empty unless of absences.
func (b *build) values(e entryRef) []int64 {
	if b.opts.OffCPU == nil {
		return nil
	}
	return b.parts[e.part].values[e.entry][e.from:e.to]
}

// wanted returns the groups of entries whose process is wanted.
func (b *build) wanted(groups [][]entryRef) [][]entryRef {
	return slices.DeleteFunc(groups, func(entries []entryRef) bool {
		samples := 0
		for _, entry := range entries {
			samples += len(b.times(entry))
		}
		if b.resolver.Wanted(b.key(entries[0]).process, samples) {
			return false
		}
		b.stats.LeftOut += uint64(samples)
		return true
	})
}

// spanOf returns the half-open interval of what entries of one process are of, which covers all of their timestamps.
func (b *build) spanOf(entries []entryRef) (start, end uint64) {
	start, end = math.MaxUint64, b.end
	for _, entry := range entries {
		start = min(start, b.parts[entry.part].start)
		for _, t := range b.times(entry) {
			start, end = min(start, t), max(end, t+1)
		}
	}
	return start, max(start, end)
}

// byEntry returns what all samples have, by entry and in order of arrival.
func byEntry[T any](b *Builder, samples []T) [][]T {
	lists := make([][]T, len(b.entries))
	if len(samples) == 0 {
		return lists
	}
	counts := make([]int, len(b.entries))
	for _, entry := range b.sampleEntries {
		counts[entry]++
	}
	all := make([]T, len(samples))
	for entry, n := range counts {
		lists[entry], all = all[:0:n], all[n:]
	}
	for i, entry := range b.sampleEntries {
		lists[entry] = append(lists[entry], samples[i])
	}
	return lists
}

// entriesByProcess returns the entries of each process, in order of appearance.
func (b *build) entriesByProcess() [][]entryRef {
	var groups [][]entryRef
	group := make(map[uint64]int)
	for p := range b.parts {
		for entry := range b.parts[p].entries {
			process := b.parts[p].entries[entry].process
			g, ok := group[process]
			if !ok {
				g = len(groups)
				group[process] = g
				groups = append(groups, nil)
			}
			groups[g] = append(groups[g], entryRef{uint32(p), uint32(entry), 0, uint32(len(b.parts[p].times[entry]))})
		}
	}
	return groups
}

// addProcess fills rp with the only profile of one process.
func (b *build) addProcess(rp pprofile.ResourceProfiles, entries []entryRef, serial uint64) {
	b.process = b.key(entries[0]).process
	b.emptyUser()
	b.runtime = emptied(b.runtime)
	b.stackOf = emptied(b.stackOf)
	b.samples = emptied(b.samples)
	b.inEpoch = nil
	b.kept, b.lacks = b.keptOf[b.process], false
	b.stats.Resources++
	b.resolver.Resource(b.process, rp.Resource().Attributes())
	CleanMap(rp.Resource().Attributes())
	if b.opts.PrometheusNames {
		b.nameResource(rp.Resource().Attributes())
		b.sets = emptied(b.sets) // their names depend on the resource's
	}
	b.tables.bytes += resourceBytes(rp.Resource().Attributes())

	sp := rp.ScopeProfiles().AppendEmpty()
	sp.Scope().SetName(b.opts.ScopeName)
	sp.Scope().SetVersion(b.opts.ScopeVersion)
	p := sp.Profiles().AppendEmpty()
	p.SetProfileID(newProfileID())
	start, end := b.spanOf(entries)
	start = startOf(start, serial)
	p.SetTime(pcommon.Timestamp(start))
	p.SetDurationNano(end - start)
	b.setType(p)
	p.Samples().EnsureCapacity(len(entries))
	for n := 0; n < len(entries); {
		expected := b.expect(entries[n:])
		for _, entry := range entries[n:][:expected] {
			b.addEntry(p, entry)
		}
		b.weigh()
		n += expected
	}
	b.keepFrames()
}

// maxExpected addresses are told to the resolver at a time, and those of one stack: few enough that it can keep all of
// what they stand for.
const maxExpected = 4 << 10

// expect tells the resolver the user addresses of the stacks of the first entries, and returns how many entries these are.
// Addresses that were resolved before are left out, callers that a stack has in common with the one before, the
// stacks of entries that are full, and frames that are to have no location.
func (b *build) expect(entries []entryRef) (n int) {
	b.expected = b.expected[:0]
	epoch, last := b.epochOf(entries[0]), ""
	resolved := b.userIn(epoch)
	for ; n < len(entries) && len(b.expected) < maxExpected; n++ {
		k := b.key(entries[n])
		if b.epochOf(entries[n]) != epoch {
			break
		}
		if _, ok := b.stackOf[stackRef{entries[n].part, k.stack, epoch}]; ok || b.full(entries[n]) {
			continue
		}
		encoded := b.parts[entries[n].part].stacks.stacks[k.stack]
		frames := decodeStack(encoded)
		frames.skip(decodeStack(last))
		for last = encoded; frames.user > 0; {
			f := frames.next()
			if f.kind != User || !b.kept.has(epoch, f) {
				continue
			}
			if _, ok := resolved[f.addr]; !ok {
				b.expected = append(b.expected, f.addr)
			}
		}
	}
	if len(b.expected) > 0 {
		b.resolver.Expect(b.process, epoch, b.expected)
	}
	return n
}

// epochOf returns the first of the epochs that are like that of an entry.
func (b *build) epochOf(entry entryRef) uint32 {
	k := b.key(entry)
	return b.resolver.Epoch(k.process, k.epoch)
}

// setType says what the values of a profile are.
func (b *build) setType(p pprofile.Profile) {
	off := b.opts.OffCPU
	if off == nil {
		p.SampleType().SetTypeStrindex(b.tables.string("samples"))
		p.SampleType().SetUnitStrindex(b.tables.string("count"))
		p.PeriodType().SetTypeStrindex(b.tables.string("cpu"))
		p.PeriodType().SetUnitStrindex(b.tables.string("nanoseconds"))
		p.SetPeriod(b.opts.Period.Nanoseconds())
		return
	}
	p.SampleType().SetTypeStrindex(b.tables.string("off_cpu"))
	p.SampleType().SetUnitStrindex(b.tables.string("nanoseconds"))
	minimum := intAttr(attrOffCPUMinimum, off.Minimum.Nanoseconds())
	minimum.unit = "ns"
	p.AttributeIndices().Append(
		b.tables.attribute(doubleAttr(attrOffCPUThreshold, off.Threshold)),
		b.tables.attribute(minimum),
	)
}

// addEntry adds an entry's timestamps to the sample of its identity, which
// other entries may share: what differs between keys need not show.
func (b *build) addEntry(p pprofile.Profile, entry entryRef) {
	k, times := b.key(entry), b.times(entry)
	built := b.stack(stackRef{entry.part, k.stack, b.epochOf(entry)}, b.full(entry))
	stack := built.index
	if built.lacking {
		b.lack(entry, len(times))
	}
	link := b.tables.link(k.link, b.opts.TraceAttributes)
	set := b.setAttributes(k.set)
	b.count(set, uint64(len(times)))
	b.indexes = b.appendAttributes(b.indexes[:0], k, link, set)
	b.identity = appendIndexes(b.identity[:0], []int32{stack, link.index})
	b.identity = appendIndexes(b.identity, b.indexes)
	i, ok := b.samples[string(b.identity)]
	if !ok {
		i = int32(p.Samples().Len())
		sample := p.Samples().AppendEmpty()
		sample.SetStackIndex(stack)
		sample.SetLinkIndex(link.index)
		sample.AttributeIndices().FromRaw(b.indexes)
		b.samples[string(b.identity)] = i
	}
	b.sampleOf = append(b.sampleOf, i)
	sample := p.Samples().At(int(i))
	sample.TimestampsUnixNano().Append(times...)
	sample.Values().Append(b.values(entry)...)
}

func (b *build) count(set setAttributes, samples uint64) {
	b.stats.Samples += samples
	b.stats.EscapedKeys += samples * set.escaped
	b.stats.RenamedKeys += samples * set.renamed
	b.stats.DroppedLabels += samples * set.dropped
}

// stack resolves a stack of the process at hand. The callers that it has in common
// with the one before, mostly all but a few, need not be looked up again. Where its entry is full, frames that are not
// known are left out.
func (b *build) stack(id stackRef, full bool) builtStack {
	if s, ok := b.stackOf[id]; ok {
		return s
	}
	if id.epoch != b.epoch || b.inEpoch == nil || full != b.crowded {
		b.resolved, b.locations, b.epoch = "", b.locations[:0], id.epoch
		b.inEpoch = b.userIn(id.epoch)
	}
	b.crowded, b.admitted = full, 0
	encoded := b.parts[id.part].stacks.stacks[id.stack]
	frames := decodeStack(encoded)
	b.locations = b.locations[:frames.skip(decodeStack(b.resolved))]
	for frames.left() > 0 {
		b.locations = append(b.locations, b.frame(frames.next()))
	}
	b.resolved = encoded
	if len(b.locations) == 0 {
		b.locations = append(b.locations, b.tables.location(0, Frame{}))
	}
	b.parts[id.part].frames += b.admitted
	lacking := full && b.standIn != 0 && slices.Contains(b.locations, b.standIn)
	s := builtStack{b.tables.stack(b.locations), lacking}
	b.stackOf[id] = s
	return s
}

func (b *build) frame(f decodedFrame) int32 {
	if f.kind == Runtime {
		return b.runtimeFrame(f)
	}
	if f.kind == Kernel {
		return b.known(b.kernel, f)
	}
	return b.known(b.inEpoch, f)
}

// userIn returns the locations of an epoch of the process at hand.
func (b *build) userIn(epoch uint32) map[uint64]int32 {
	locations, ok := b.user[epoch]
	if !ok {
		if locations, b.spare = b.spare, nil; locations == nil {
			locations = make(map[uint64]int32)
		}
		b.user[epoch] = locations
	}
	return locations
}

// emptyUser forgets the locations of a process.
func (b *build) emptyUser() {
	for _, locations := range b.user {
		b.spare = emptied(locations)
	}
	b.user = emptied(b.user)
}

// known returns the location of a frame, which is asked for if locations do not have its address. Frames of the kernel
// are no more than its code has.
func (b *build) known(locations map[uint64]int32, f decodedFrame) int32 {
	i, ok := locations[f.addr]
	if !ok {
		if f.kind != Kernel && !b.admit(f) {
			return b.tooMany()
		}
		before := b.tables.bytes
		frame := b.resolver.Frame(b.process, b.epoch, f.kind, f.addr)
		i = b.tables.location(f.addr, frame)
		if f.kind != Kernel {
			b.weighFrame(&frame, before)
		}
		locations[f.addr] = i
	}
	return i
}

// runtimeFrame returns the location of a frame that has no address.
func (b *build) runtimeFrame(f decodedFrame) int32 {
	key := [2]uint64{f.addr, f.object}
	i, ok := b.runtime[key]
	if !ok {
		if !b.admit(f) {
			return b.tooMany()
		}
		before := b.tables.bytes
		frame := b.resolver.RuntimeFrame(b.process, record.RuntimeWord(f.addr), f.object)
		i = b.tables.location(0, frame)
		b.weighFrame(&frame, before)
		b.runtime[key] = i
	}
	return i
}

// emptied returns a map without elements. To clear one that was large would cost every
// later process.
func emptied[K comparable, V any](m map[K]V) map[K]V {
	const large = 1 << 10
	if m == nil || len(m) > large {
		return make(map[K]V)
	}
	clear(m)
	return m
}

// newProfileID returns a fresh id: consumers may drop what they have seen.
func newProfileID() pprofile.ProfileID {
	var id pprofile.ProfileID
	_, _ = rand.Read(id[:]) // cannot fail, see crypto/rand
	return id
}
