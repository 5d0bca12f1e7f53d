//go:build linux

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// mapping is one of a file that is told by its inode; 0: of none.
func mapping(start, limit, inode uint64) executable.Mapping {
	m := executable.Mapping{Start: start, Limit: limit, Inode: inode, Path: fmt.Sprint(inode)}
	if inode != 0 {
		m.File = executable.NewFile(procfs.FileID{Inode: inode}, m.Path, executable.Facts{}, nil)
	}
	return m
}

// lookAgain has a look at what is mapped follow another one.
func lookAgain(before *Info, epoch uint32, interval uint64, mappings ...executable.Mapping) (*Info, succession) {
	info := &Info{Mappings: slices.Clone(mappings)}
	s := info.follow(before, coming{epoch: epoch}, interval)
	return info, s
}

// at tells what was at an address in an epoch; "" for nothing.
func at(info *Info, epoch uint32, addr uint64) string {
	if m := info.MappingIn(info.Epoch(epoch), addr); m != nil {
		return m.Path
	}
	return ""
}

// What a sample of an epoch refers to is what was there, whatever has its place later.
func TestMappingsFollow(t *testing.T) {
	program, c := mapping(0x1000, 0x2000, 1), mapping(0x7000, 0x8000, 7)
	info, s := lookAgain(&Info{Mappings: []executable.Mapping{program}}, 1, 0, program, mapping(0x4000, 0x5000, 2), c)
	require.Equal(t, succession{}, s, "nothing was there")
	require.Equal(t, "2", at(info, 0, 0x4000), "what was there may have come before the look")

	a := info.Mappings[1]
	info, s = lookAgain(info, 3, 0, program, mapping(0x4000, 0x5000, 3), c)
	require.Equal(t, succession{replaced: true, gone: []*executable.File{a.File}}, s)
	require.Equal(t, []string{"2", "2", "2", "3", "3"}, []string{
		at(info, 0, 0x4fff), at(info, 1, 0x4000), at(info, 2, 0x4000), at(info, 3, 0x4000), at(info, 4, 0x4000),
	})
	require.Equal(t, []uint32{0, 0, 3, 3}, []uint32{info.Epoch(0), info.Epoch(2), info.Epoch(3), info.Epoch(9)})
	require.Equal(t, "1", at(info, 2, 0x1000), "others stay")
	require.Equal(t, "7", at(info, 3, 0x7000))
	require.Empty(t, at(info, 2, 0x5000))
	require.NotZero(t, info.bytes()-(&Info{Mappings: info.Mappings}).bytes())

	// The first one again, and other addresses of what is there.
	info, s = lookAgain(info, 5, 0, program, mapping(0x4000, 0x4800, 2), c)
	require.True(t, s.replaced)
	require.Equal(t, []string{"2", "3", "3", "2", ""}, []string{
		at(info, 2, 0x4000), at(info, 3, 0x4000), at(info, 4, 0x4fff), at(info, 5, 0x4000), at(info, 5, 0x4fff),
	})

	// Code without a file in the place of one.
	info, s = lookAgain(info, 6, 0, program, mapping(0x3000, 0x5000, 0), c)
	require.True(t, s.replaced)
	require.Equal(t, []string{"2", "3", "2", "0"}, []string{
		at(info, 2, 0x4000), at(info, 4, 0x4000), at(info, 5, 0x4000), at(info, 6, 0x4000),
	})
	grown, s := lookAgain(info, 7, 0, program, mapping(0x3000, 0x6000, 0), c)
	require.Equal(t, succession{}, s, "code without a file is one")
	require.Equal(t, "2", at(grown, 2, 0x4000))

	// And one in the place of that.
	info, s = lookAgain(grown, 8, 0, program, mapping(0x4000, 0x5000, 8), c)
	require.Equal(t, succession{replaced: true}, s, "code without a file has no names later")
	require.Equal(t, []string{"", "8"}, []string{at(info, 7, 0x4000), at(info, 8, 0x4000)})
}

// A place that is empty has what was there, until another file comes, or the same one is back.
func TestMappingsGone(t *testing.T) {
	program, a := mapping(0x1000, 0x2000, 1), mapping(0x4000, 0x5000, 2)
	info, s := lookAgain(&Info{Mappings: []executable.Mapping{program, a}}, 1, 0, program)
	require.Equal(t, succession{gone: []*executable.File{a.File}}, s)
	require.Equal(t, []string{"2", "2"}, []string{at(info, 0, 0x4000), at(info, 1, 0x4000)})
	require.Zero(t, info.Epoch(1), "all addresses are what they were")

	back, s := lookAgain(info, 2, 0, program, mapping(0x4000, 0x5000, 2))
	require.Equal(t, succession{}, s)
	require.Empty(t, back.past)
	half, s := lookAgain(info, 2, 0, program, mapping(0x4000, 0x4800, 2))
	require.Equal(t, succession{}, s)
	require.Equal(t, []string{"2", "2"}, []string{at(half, 2, 0x4000), at(half, 2, 0x4fff)})

	info, s = lookAgain(info, 4, 1, program, mapping(0x4800, 0x5800, 3))
	require.Equal(t, succession{replaced: true}, s)
	require.Equal(t, []string{"2", "3"}, []string{at(info, 3, 0x4800), at(info, 4, 0x4800)})

	require.Len(t, info.past, 1)
	info, _ = lookAgain(info, 5, pastIntervals-1, info.Mappings...)
	require.Len(t, info.past, 1)
	info, _ = lookAgain(info, 5, pastIntervals, info.Mappings...)
	require.Empty(t, info.past, "no batch has samples of it any more")
	require.Empty(t, at(info, 3, 0x4800), "what came later was not there")
}

// The part of a file that is mapped counts, not where its mapping begins; and a file that could not be
// read is itself when it can.
func TestSameFileStays(t *testing.T) {
	whole := mapping(0x4000, 0x6000, 2)
	part := func(start, limit, offset uint64) executable.Mapping {
		m := mapping(start, limit, 2)
		m.Offset = offset
		return m
	}
	_, s := lookAgain(&Info{Mappings: []executable.Mapping{whole}}, 1, 0, part(0x4000, 0x5000, 0), part(0x5000, 0x6000, 0x1000))
	require.False(t, s.replaced)
	_, s = lookAgain(&Info{Mappings: []executable.Mapping{whole}}, 1, 0, part(0x5000, 0x6000, 0))
	require.True(t, s.replaced, "other code of it")
	other := whole
	other.File = executable.NewFile(procfs.FileID{Inode: 2, CtimeNs: 1}, "", executable.Facts{}, nil)
	_, s = lookAgain(&Info{Mappings: []executable.Mapping{whole}}, 1, 0, other)
	require.True(t, s.replaced, "one that was given its inode")
	unread := whole
	unread.File = nil
	info, s := lookAgain(&Info{Mappings: []executable.Mapping{unread}}, 1, 0, whole)
	require.Equal(t, succession{}, s)
	require.Equal(t, "2", at(info, 0, 0x4000))
}

func TestPastMappingsAreBounded(t *testing.T) {
	info := &Info{Mappings: []executable.Mapping{mapping(0x1000, 0x2000, 1)}}
	const n = maxPastMappings + 10
	for i := uint64(1); i <= n; i++ {
		var s succession
		info, s = lookAgain(info, uint32(i), 0, mapping(0x1000, 0x2000, 1+i))
		require.Equal(t, i > maxPastMappings, s.cut, i)
	}
	require.Len(t, info.past, maxPastMappings)
	require.Len(t, info.epochs, maxPastMappings)
	for i := uint32(0); i <= n; i++ {
		want := fmt.Sprint(1 + i)
		if i < n-maxPastMappings {
			want = ""
		}
		require.Equal(t, want, at(info, i, 0x1000), i)
	}
}

// Samples are told apart by when a file was mapped, also those that are read before a look has seen it.
func TestEpochs(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	require.NoError(t, os.WriteFile(a, []byte("a"), 0o644))
	require.NoError(t, os.WriteFile(b, []byte("b"), 0o644))
	put := func(inode int, path string) {
		require.NoError(t, os.RemoveAll(filepath.Join(f.root, "42", "map_files")))
		f.mapFile(path)
		f.write(42, "maps", fmt.Sprintf("10000-20000 r-xp 00000000 00:01 %d %s\n", inode, path))
	}
	maps := func(ns int64) {
		f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42, TimeNs: uint64(ns), FileNs: uint64(ns)})
	}
	put(7, a)
	f.HandleEvent(exists(image1))
	p := f.process(image1)
	maps(f.clock.Load())
	require.Zero(t, p.EpochAt(uint64(f.clock.Load())), "nothing is known that it could be in the place of")
	f.work()
	named := func(ns int64) string {
		info := p.Info()
		m := info.MappingIn(info.Epoch(p.EpochAt(uint64(ns))), 0x10000)
		if m == nil {
			return ""
		}
		return filepath.Base(m.Path)
	}
	before := f.clock.Load()
	f.advance(int64(rereadGap))
	f.HandleEvent(record.Event{Kind: record.EventMapping, PID: 42, TimeNs: uint64(f.clock.Load())})
	require.Zero(t, p.EpochAt(uint64(f.clock.Load())), "code without a file begins none")
	f.advance(int64(rereadGap))
	mapped := f.clock.Load()
	put(8, b)
	maps(mapped)
	f.advance(ms)
	maps(mapped + ms) // another library
	require.EqualValues(t, 1, p.EpochAt(uint64(mapped+2*ms)), "no look was there in between")
	require.Equal(t, []string{"a", "a"}, []string{named(mapped - 1), named(mapped)}, "nobody has looked")
	f.work()
	require.Equal(t, []string{"a", "a", "b", "b"}, []string{named(before), named(mapped - 1), named(mapped), named(mapped + ms)})
	require.False(t, p.Info().Mappings[0].File.Unused())
	old := &p.Info().past[0]
	require.False(t, old.File.Unused(), "it can still be opened")

	// No event tells of what takes the place of b; the look does.
	f.advance(100 * ms)
	put(7, a)
	f.jobs.schedule(p, workReread, urgent)
	seen := f.clock.Load()
	f.work()
	require.Equal(t, []string{"a", "b", "b", "a"}, []string{named(mapped - 1), named(mapped), named(seen - 1), named(seen)})

	// An event of what the look has seen comes late.
	maps(seen - ms)
	require.EqualValues(t, 2, p.EpochAt(uint64(seen)))

	child := record.ProcessID{TGID: 43, StartNs: 6e9}
	f.HandleEvent(record.Event{Kind: record.EventFork, Process: child, Parent: image1, PID: 43, TimeNs: uint64(f.clock.Load())})
	info := f.process(child).Info()
	require.Equal(t, "a", filepath.Base(info.MappingIn(info.Epoch(0), 0x10000).Path), "its own epochs begin")
	require.Empty(t, info.past)
	require.EqualValues(t, 2, p.Info().Mappings[0].Since)

	for range pastIntervals {
		require.NotEmpty(t, f.pastFiles)
		require.False(t, old.File.Unused())
		f.EndInterval()
	}
	require.Empty(t, f.pastFiles)
	f.jobs.schedule(p, workReread, urgent)
	f.work()
	require.Empty(t, p.Info().past)
}

// So many files of one look, or of all, are not kept open.
func TestPastFilesAreBounded(t *testing.T) {
	f := newFake(t)
	files := make([]*executable.File, maxPastFiles+1)
	for i := range files {
		files[i] = mapping(0, 1, uint64(i+1)).File
	}
	const most = maxPastFiles/2 + 1 // of one user
	for range 3 {
		f.keepFiles(1, files[most:maxPastFiles]) // again
	}
	f.interval++
	f.keepFiles(1000, files[:1])
	f.interval++
	f.keepFiles(1000, files[1:most])
	require.Len(t, f.pastFiles, maxPastFiles)
	require.Zero(t, f.Stats().MappingsCut)
	f.keepFiles(1000, files[maxPastFiles:])
	require.EqualValues(t, 1, f.Stats().MappingsCut)
	require.Len(t, f.pastFiles, maxPastFiles)
	require.True(t, files[0].Unused(), "the oldest of the user who has most")
	f.interval += pastIntervals - 1
	f.forgetFiles()
	require.Len(t, f.pastFiles, most, "those of the last interval")
	f.interval++
	f.forgetFiles()
	require.Empty(t, f.pastFiles)
	for _, file := range files {
		require.True(t, file.Unused())
	}
}

// Epochs that cannot be told apart by time any more are the oldest that can.
func TestEpochsAreBounded(t *testing.T) {
	p := &Process{}
	p.lookedNs = 1
	for i := range int64(2 * maxEpochs) {
		p.mapsFile(1e9 * (i + 1))
		p.mapsFile(1e9*(i+1) + 5) // in the same
		require.Equal(t, uint32(i+1), p.comingEpoch(0).epoch)
		p.sawEpochs(1e9*(i+1) + 4) // a look that began before
		require.Equal(t, uint32(i+1), p.comingEpoch(0).epoch)
		p.sawEpochs(1e9*(i+1) + 5)
		require.Equal(t, uint32(i+2), p.comingEpoch(0).epoch)
	}
	require.EqualValues(t, 2*maxEpochs, p.EpochAt(1e12))
	require.EqualValues(t, 2*maxEpochs-1, p.EpochAt(1e9*2*maxEpochs-1))
	require.EqualValues(t, maxEpochs, p.EpochAt(0))
}

// What is gone has the name that the process had for it, which counts, and holds a file once.
func TestPastHoldsLittle(t *testing.T) {
	a := mapping(0x1000, 0x2000, 1)
	b := a
	b.Start, b.Limit, b.Offset, b.Path = 0x3000, 0x4000, 0x2000, "another link"
	info, s := lookAgain(&Info{Mappings: []executable.Mapping{a, b}}, 1, 0)
	require.Equal(t, []*executable.File{a.File}, s.gone)
	require.Equal(t, "another link", at(info, 0, 0x3000))
	shared, _ := lookAgain(&Info{Mappings: []executable.Mapping{a, a}}, 1, 0)
	require.Equal(t, len(b.Path), info.pastBytes()-shared.pastBytes())
}

// Where memory is short, what is gone is the first to go, and no reason for more to go.
func TestPastGoesFirst(t *testing.T) {
	before := &Info{Mappings: []executable.Mapping{mapping(0x1000, 0x2000, 1)}}
	info, _ := lookAgain(before, 1, 0, mapping(0x1000, 0x2000, 2))
	l := &look{wanted: true, info: *info}
	l.read.info = before
	l.reduce(true)
	require.Empty(t, l.info.past)
	require.True(t, l.info.forgot)
	require.Len(t, l.info.Mappings, 1)
	require.Equal(t, extentWhole, l.read.extent)
}

// A process of which no mappings are kept, for want of memory, has none of later in their place.
func TestReducedForgetsMappings(t *testing.T) {
	l := &look{wanted: true, info: Info{Mappings: []executable.Mapping{mapping(0x1000, 0x2000, 1)}}}
	l.read.info = &Info{}
	l.reduce(true)
	require.Equal(t, extentReduced, l.read.extent)
	info, _ := lookAgain(&l.info, 3, 0, mapping(0x1000, 0x2000, 2))
	require.Empty(t, at(info, 0, 0x1000))
	require.Equal(t, "2", at(info, 3, 0x1000))
}

// A look of which nothing is shown has not seen what was mapped.
func TestEpochOfLookInVain(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	p.epochs.Store((*epochs)(nil).next(1, 0, true))
	l := &look{wanted: true, full: true, tid: 77, read: p.worker().read, succession: succession{replaced: true}, coming: coming{epoch: 2}}
	_, err := f.conclude(p, workLoad, l)
	require.ErrorIs(t, err, errOtherThread)
	require.EqualValues(t, 1, p.comingEpoch(0).epoch)
	l.tid = 42
	_, err = f.conclude(p, workLoad, l)
	require.NoError(t, err)
	require.EqualValues(t, 2, p.epochs.Load().last)
}

// What memory is short for, or nobody wants, has no past.
func TestPastIsLeftOut(t *testing.T) {
	info := &Info{Mappings: []executable.Mapping{mapping(0x1000, 0x2000, 1)}, past: []pastMapping{{}}}
	l := &look{wanted: true, full: true, info: *info}
	l.reduce(true)
	require.Empty(t, l.info.past)
	l = &look{info: *info}
	decide(l, &situation{})
	require.Empty(t, l.info.past)
	shown := &look{wanted: true, info: Info{}}
	shown.read.info = &Info{past: []pastMapping{{}}}
	require.True(t, decide(shown, &situation{publication: publishedSources}).show, "it goes")
}

// A mapping of which it is not known any more what was in its place is there from when it is found on.
func TestForgottenPlaces(t *testing.T) {
	program := mapping(0x1000, 0x2000, 1)
	place := func(n, inode uint64) executable.Mapping { return mapping(n<<16, n<<16+0x1000, inode) }
	for name, forget := range map[string]func(*Info) *Info{
		"too many at once": func(info *Info) *Info {
			for n := range uint64(maxPastMappings) {
				info.Mappings = append(info.Mappings, place(10+n, 1000+n))
			}
			info, _ = lookAgain(info, 1, 0, program)
			return info
		},
		"too long ago": func(info *Info) *Info {
			info, _ = lookAgain(info, 1, 0, program)
			info, _ = lookAgain(info, 1, pastIntervals, program)
			return info
		},
		"memory is short": func(info *Info) *Info {
			info, _ = lookAgain(info, 1, 0, program)
			l := &look{wanted: true, info: *info}
			l.read.info = info
			l.reduce(true)
			return &l.info
		},
	} {
		info := forget(&Info{Mappings: []executable.Mapping{program, place(1, 2)}})
		require.True(t, info.forgot, name)
		next, s := lookAgain(info, 3, pastIntervals, program, mapping(0x8000, 0x9000, 0), place(1, 3))
		require.True(t, s.replaced, name)
		require.Equal(t, []string{"", "", "3", "1"}, []string{at(next, 0, 1<<16), at(next, 2, 1<<16), at(next, 3, 1<<16), at(next, 0, 0x1000)}, name)
		require.Zero(t, next.Mappings[1].Since, "%s: code without a file has no names later", name)
		again, s := lookAgain(next, 4, pastIntervals, next.Mappings...)
		require.False(t, s.replaced, "%s: it is known", name)
		require.Equal(t, next.Mappings, again.Mappings, name)
		left, _ := lookAgain(next, 4, pastIntervals, program)
		back, s := lookAgain(left, 5, pastIntervals, program, place(1, 3))
		require.False(t, s.replaced, "%s: it is back", name)
		require.Equal(t, []string{"", "3"}, []string{at(back, 2, 1<<16), at(back, 3, 1<<16)}, name)
	}
	known, _ := lookAgain(&Info{Mappings: []executable.Mapping{program}}, 1, 9*pastIntervals, program, place(1, 2))
	require.Zero(t, known.Mappings[1].Since)
	gone, _ := lookAgain(known, 1, 0, program)
	replaced, _ := lookAgain(gone, 2, 0, program, place(1, 3))
	forgotten, _ := lookAgain(replaced, 3, pastIntervals, program, place(1, 3))
	require.Empty(t, forgotten.past)
	require.False(t, forgotten.forgot, "what has its place is known")
}

// Of the files that are gone, those are kept open of which mappings are kept.
func TestPastFilesAreThoseOfMappings(t *testing.T) {
	before := &Info{}
	for n := range uint64(maxPastMappings + 1) {
		before.Mappings = append(before.Mappings, mapping(n<<12, (n+1)<<12, 1+n))
	}
	info, s := lookAgain(before, 1, 0)
	require.True(t, s.cut)
	require.Len(t, info.past, maxPastMappings)
	require.Len(t, s.gone, maxPastMappings)
	for i := range info.past {
		require.Same(t, info.past[i].File, s.gone[i])
	}
	_, s = lookAgain(info, 2, 0, mapping(maxPastMappings<<12, (maxPastMappings+1)<<12, 1000))
	require.Empty(t, s.gone, "no more has gone")

	one, _ := lookAgain(before, 1, 0, before.Mappings[1:]...)
	_, s = lookAgain(one, 2, 0)
	require.Len(t, s.gone, maxPastMappings, "the first one was kept open already")
}

// Events come in any order, and a look may be faster than they are: an epoch begins with the earliest.
func TestEpochBeginsEarlier(t *testing.T) {
	const skew = int64(clockSkew)
	at := func(ms int64) uint64 { return uint64(ms * 1e6) }
	p := &Process{}
	p.lookedNs = 10e6
	p.mapsFile(100e6)
	p.mapsFile(20e6)
	p.mapsFile(60e6)
	require.Equal(t, []uint32{0, 1, 1}, []uint32{p.EpochAt(at(19)), p.EpochAt(at(20)), p.EpochAt(at(200))})
	p.mapsFile(10e6 - skew)
	require.EqualValues(t, 0, p.EpochAt(at(19)), "a look has seen that one")
	p.mapsFile(10e6 - skew + 1)
	require.EqualValues(t, 1, p.EpochAt(at(11)))

	p.sawEpochs(300e6)
	c := p.comingEpoch(0)
	require.Equal(t, coming{epoch: 2, sinceNs: 10e6}, c)
	p.lookedNs = 300e6
	c = p.comingEpoch(0)
	p.beginEpoch(&c, 400e6)
	p.lookedNs = 400e6
	require.EqualValues(t, 1, p.EpochAt(at(350)))
	p.mapsFile(350e6)
	require.EqualValues(t, 2, p.EpochAt(at(350)), "it tells of what the look has found")
	require.EqualValues(t, 3, p.comingEpoch(0).epoch)
	p.mapsFile(300e6 - skew)
	p.mapsFile(370e6)
	require.Equal(t, []uint32{1, 2, 2}, []uint32{p.EpochAt(at(349)), p.EpochAt(at(350)), p.EpochAt(at(500))})
}

// Where events were lost, nobody knows when a file came to another's place, between two looks.
func TestLostEventsLeaveDoubt(t *testing.T) {
	p := &Process{}
	p.lookedNs = 100e6
	c := p.comingEpoch(100e6)
	require.Equal(t, coming{epoch: 1, sinceNs: 100e6}, c, "the look came after that")
	c = p.comingEpoch(200e6)
	require.Equal(t, coming{epoch: 2, lost: true, sinceNs: 100e6}, c)
	program, a := mapping(0x1000, 0x2000, 1), mapping(0x4000, 0x5000, 2)
	info := &Info{Mappings: []executable.Mapping{program, mapping(0x4000, 0x5000, 3)}}
	require.True(t, info.follow(&Info{Mappings: []executable.Mapping{program, a}}, c, 0).replaced)
	p.beginEpoch(&c, 300e6)
	name := func(ns uint64, addr uint64) string { return at(info, p.EpochAt(ns), addr) }
	require.Equal(t, []string{"2", "", "", "3"}, []string{name(99e6, 0x4000), name(100e6, 0x4000), name(299e6, 0x4000), name(300e6, 0x4000)})
	require.Equal(t, "1", name(200e6, 0x1000))
	p.lookedNs = 300e6
	require.Equal(t, coming{epoch: 3, sinceNs: 300e6}, p.comingEpoch(200e6))
	p.mapsFile(400e6)
	require.Equal(t, coming{epoch: 3, sinceNs: 300e6}, p.comingEpoch(0), "an event has told of it")

	// That an event has told of another one does not end the doubt.
	c = p.comingEpoch(350e6)
	require.Equal(t, coming{epoch: 4, lost: true, sinceNs: 300e6}, c)
	p.beginEpoch(&c, 500e6)
	epochs := func(at ...uint64) (all []uint32) {
		for _, ms := range at {
			all = append(all, p.EpochAt(ms*1e6))
		}
		return all
	}
	require.Equal(t, []uint32{1, 3, 3, 4}, epochs(299, 300, 499, 500))
	p.lookedNs = 500e6
	p.sawEpochs(500e6)
	p.mapsFile(450e6)
	require.Equal(t, []uint32{3, 4}, epochs(499, 500), "what comes late does not either")

	// One that came while the look was taken was not seen.
	c = p.comingEpoch(550e6)
	require.Equal(t, coming{epoch: 6, lost: true, sinceNs: 500e6}, c)
	p.mapsFile(700e6)
	p.beginEpoch(&c, 600e6)
	require.Equal(t, []uint32{3, 5, 5, 6, 6, 7}, epochs(499, 500, 599, 600, 699, 700))
	p.lookedNs = 600e6
	p.sawEpochs(600e6)
	require.Equal(t, coming{epoch: 7, sinceNs: 600e6}, p.comingEpoch(0))
}

// Links, removal and changed attributes make no other file of one, nor does what is written to memory that
// is shared.
func TestSameContentsStay(t *testing.T) {
	file := func(ctime int64, hash string, err error) executable.Mapping {
		m := mapping(0x4000, 0x5000, 2)
		m.File = executable.NewFile(procfs.FileID{Inode: 2, CtimeNs: ctime}, "2", executable.Facts{HTLHash: hash}, err)
		return m
	}
	for _, tc := range []struct {
		before, after executable.Mapping
		replaced      bool
	}{
		{file(1, "a", nil), file(2, "a", nil), false},
		{file(1, "a", nil), file(2, "b", nil), true},
		{file(1, "", nil), file(2, "", nil), true},
		{file(1, "a", os.ErrInvalid), file(2, "b", os.ErrInvalid), false},
		{file(1, "a", os.ErrInvalid), file(2, "b", nil), true},
	} {
		_, s := lookAgain(&Info{Mappings: []executable.Mapping{tc.before}}, 1, 0, tc.after)
		require.Equal(t, tc.replaced, s.replaced)
	}
	larger := file(2, "a", nil)
	larger.File = executable.NewFile(procfs.FileID{Inode: 2, CtimeNs: 2, Size: 1}, "2", executable.Facts{HTLHash: "a"}, nil)
	_, s := lookAgain(&Info{Mappings: []executable.Mapping{file(1, "a", nil)}}, 1, 0, larger)
	require.True(t, s.replaced)
}
