//go:build linux

package process

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

func TestFindMapping(t *testing.T) {
	mappings := []procfs.Mapping{{Start: 0x1000, Limit: 0x2000}, {Start: 0x3000, Limit: 0x4000}}
	for addr, want := range map[uint64]*procfs.Mapping{
		0xfff: nil, 0x1000: &mappings[0], 0x1fff: &mappings[0], 0x2000: nil, 0x2fff: nil, 0x3000: &mappings[1], 0x4000: nil,
	} {
		require.Same(t, want, findMapping(mappings, addr), "%#x", addr)
	}
}

// Pieces of generated code are one mapping if they follow each other and have one name.
func TestJoinedMappings(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	f.write(42, "maps", `10000-11000 r-xp 00000000 00:00 0 [anon:a]
11000-12000 rwxp 00000000 00:00 0 [anon:a]
12000-13000 r-xp 00000000 00:00 0 [anon:b]
14000-15000 r-xp 00000000 00:00 0 [anon:b]
15000-16000 r-xp 00000000 00:01 7 /lib/one.so
16000-17000 r-xp 00001000 00:01 7 /lib/one.so
`)
	f.HandleEvent(exists(image1))
	f.work()
	var got [][2]uint64
	for _, m := range f.process(image1).Info().Mappings {
		got = append(got, [2]uint64{m.Start, m.Limit})
	}
	require.Equal(t, [][2]uint64{{0x10000, 0x12000}, {0x12000, 0x13000}, {0x14000, 0x15000}, {0x15000, 0x16000}, {0x16000, 0x17000}}, got)
}

// Another file, or another part of it, at the address of one that is known is another mapping.
func TestMappingReplaced(t *testing.T) {
	f := newFake(t)
	f.image(42, 500, "/bin/one")
	const before = "10000-20000 r-xp 00000000 00:01 7 /lib/one.so\n"
	f.write(42, "maps", before)
	f.HandleEvent(exists(image1))
	f.work()
	p := f.process(image1)
	reread := func() *Info {
		f.schedule(p, workReread, urgent)
		f.work()
		return p.Info()
	}
	known := p.Info()
	require.Same(t, known, reread(), "nothing has changed")
	for _, after := range []string{
		"10000-20000 r-xp 00000000 00:01 8 /lib/two.so\n",
		"10000-20000 r-xp 00000000 00:02 8 /lib/three.so\n",
		"10000-20000 r-xp 00001000 00:02 8 /lib/three.so\n",
		"10000-1f000 r-xp 00001000 00:02 8 /lib/three.so\n",
	} {
		f.write(42, "maps", after)
		known = reread()
		m := known.Mapping(0x10000)
		var raw procfs.Mapping
		for raw = range f.opts.FS.Mappings(42) {
		}
		require.True(t, m.shows(&raw), after)
		require.Equal(t, raw.Path, m.Path)
	}
}

// Files are in use as long as what was read last refers to them.
func TestFilesInUse(t *testing.T) {
	old, kept := &File{}, &File{}
	p := &Process{}
	p.setCurrent(read{info: &Info{Mappings: []ExecMapping{{File: old}, {File: kept}}}})
	p.setCurrent(read{info: &Info{Mappings: []ExecMapping{{File: kept}}}})
	require.Zero(t, old.users.Load())
	require.EqualValues(t, 1, kept.users.Load())
	p.setCurrent(read{})
	require.Zero(t, kept.users.Load())
}
