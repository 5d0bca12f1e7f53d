//go:build linux

package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

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
		f.jobs.schedule(p, workReread, urgent)
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
		require.True(t, m.Shows(&raw), after)
		require.Equal(t, raw.Path, m.Path)
	}
}

// The pages are those that the kernel counts.
func TestExecPages(t *testing.T) {
	var s scratch
	f := newRowsFake(t, 1)
	_, cmd := f.start()
	require.NoError(t, s.read(f.opts.FS, cmd.Process.Pid))
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status"))
	require.NoError(t, err)
	var told uint64
	for _, name := range []string{"VmExe", "VmLib"} {
		var kilobytes uint64
		_, rest, _ := strings.Cut(string(status), name+":")
		_, err := fmt.Sscan(rest, &kilobytes)
		require.NoError(t, err)
		told += kilobytes << 10
	}
	require.Equal(t, told, s.execPages()*uint64(os.Getpagesize()))
}

// Files are in use as long as what was read last refers to them.
func TestFilesInUse(t *testing.T) {
	file := func() *executable.File { return executable.NewFile(procfs.FileID{}, "", executable.Facts{}, nil) }
	old, kept := file(), file()
	p := &Process{}
	p.setCurrent(read{info: &Info{Mappings: []executable.Mapping{{File: old}, {File: kept}}}})
	require.False(t, old.Unused())
	p.setCurrent(read{info: &Info{Mappings: []executable.Mapping{{File: kept}}}})
	require.True(t, old.Unused())
	require.False(t, kept.Unused())
	p.setCurrent(read{})
	require.True(t, kept.Unused())
}
