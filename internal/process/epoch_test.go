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
	s := info.follow(before, epoch, interval)
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
	f.keepFiles(files[:maxPastFiles])
	require.Zero(t, f.Stats().MappingsCut)
	f.keepFiles(files[maxPastFiles:])
	require.EqualValues(t, 1, f.Stats().MappingsCut)
	require.True(t, files[0].Unused())
	require.False(t, files[1].Unused())
	require.Len(t, f.pastFiles, maxPastFiles)
}

// Epochs that cannot be told apart by time any more are the oldest that can.
func TestEpochsAreBounded(t *testing.T) {
	p := &Process{}
	p.lookedNs = 1
	for i := range int64(2 * maxEpochs) {
		p.mapsFile(1e9 * (i + 1))
		p.mapsFile(1e9*(i+1) + 5) // in the same
		require.Equal(t, uint32(i+1), p.comingEpoch())
		p.sawEpochs(1e9*(i+1) - 1) // a look that began before
		require.Equal(t, uint32(i+1), p.comingEpoch())
		p.sawEpochs(1e9 * (i + 1))
		require.Equal(t, uint32(i+2), p.comingEpoch())
	}
	require.EqualValues(t, 2*maxEpochs, p.EpochAt(1e12))
	require.EqualValues(t, 2*maxEpochs-1, p.EpochAt(1e9*2*maxEpochs-1))
	require.EqualValues(t, maxEpochs, p.EpochAt(0))
}

// Of what is gone no name is held but the file's, and a file once.
func TestPastHoldsLittle(t *testing.T) {
	a := mapping(0x1000, 0x2000, 1)
	b := a
	b.Start, b.Limit, b.Offset, b.Path = 0x3000, 0x4000, 0x2000, "another link"
	info, s := lookAgain(&Info{Mappings: []executable.Mapping{a, b}}, 1, 0)
	require.Equal(t, []*executable.File{a.File}, s.gone)
	require.Equal(t, "1", at(info, 0, 0x3000))
}

// Where memory is short, what is gone is the first to go, and no reason for more to go.
func TestPastGoesFirst(t *testing.T) {
	before := &Info{Mappings: []executable.Mapping{mapping(0x1000, 0x2000, 1)}}
	info, _ := lookAgain(before, 1, 0, mapping(0x1000, 0x2000, 2))
	l := &look{wanted: true, info: *info}
	l.read.info = before
	l.reduce(true)
	require.Empty(t, l.info.past)
	require.Len(t, l.info.Mappings, 1)
	require.Equal(t, extentWhole, l.read.extent)
}

// A look of which nothing is shown has not seen what was mapped.
func TestEpochOfLookInVain(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	p.epochs.Store((*epochs)(nil).next(1, true))
	l := &look{wanted: true, full: true, tid: 77, read: p.worker().read, succession: succession{replaced: true}, epoch: 2}
	_, err := f.conclude(p, workLoad, l)
	require.ErrorIs(t, err, errOtherThread)
	require.EqualValues(t, 1, p.comingEpoch())
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
