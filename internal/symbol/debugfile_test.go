package symbol

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// split is a library whose symbols were taken away, and where they are.
type split struct {
	root, path, debug string // path below root
	buildID           string
	hidden            uint64 // address of a function that is not exported
}

func tool(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// newSplit makes one; flags are for the linker.
func newSplit(t testing.TB, flags ...string) *split {
	t.Helper()
	whole := build(t, flags...)
	s := &split{root: t.TempDir(), path: "/opt/lib/p.so", debug: whole + ".debug"}
	tool(t, "objcopy", "--only-keep-debug", whole, s.debug)
	f, err := elf.Open(whole)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	for _, sym := range symbols {
		if sym.Name == "hidden" {
			s.hidden = sym.Value
		}
	}
	require.NotZero(t, s.hidden)
	file, e := open(t, whole)
	defer file.Close()
	s.buildID, err = e.BuildID()
	require.NoError(t, err)
	tool(t, "strip", whole)
	s.place(t, whole, s.path)
	return s
}

// place puts a copy of a file below the root.
func (s *split) place(t testing.TB, from, to string) {
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(s.root+to), 0o755))
	require.NoError(t, os.WriteFile(s.root+to, data, 0o755))
}

// link makes the file name its debug file.
func (s *split) link(t testing.TB) {
	tool(t, "objcopy", "--add-gnu-debuglink="+s.debug, s.root+s.path)
}

// name returns the name of the hidden function.
func (s *split) name(t testing.TB) string {
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	fn, _ := lookup(c, 1, &rooted{opener{path: s.root + s.path, root: s.root}, s.path}, s.hidden)
	require.Zero(t, c.Stats().Failures)
	return fn.Name
}

// rooted is a file that has another path for its process.
type rooted struct {
	opener
	path string
}

func (r *rooted) Path() string { return r.path }

func (r *rooted) Open() (Contents, int64, error) { return r.opener.Open() }

const linkName = "p.so.debug"

func TestDebugFileByBuildID(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id")
	require.Empty(t, s.name(t))
	at := debugDir + "/.build-id/" + s.buildID[:2] + "/" + s.buildID[2:] + ".debug"
	other := newSplit(t, "-Wl,--build-id", "-O2")
	s.place(t, other.debug, at)
	require.Empty(t, s.name(t), "another build id")
	s.place(t, s.root+s.path, at)
	require.Empty(t, s.name(t), "stripped itself")
	s.place(t, s.debug, at)
	require.Equal(t, "hidden", s.name(t))
}

func TestDebugFileByLink(t *testing.T) {
	for _, flag := range []string{"-Wl,--build-id=none", "-Wl,--build-id"} {
		s := newSplit(t, flag)
		other := newSplit(t, flag, "-O2")
		s.link(t)
		require.Empty(t, s.name(t))
		for _, at := range []string{"/opt/lib/", "/opt/lib/.debug/", debugDir + "/opt/lib/"} {
			s.place(t, other.debug, at+linkName)
			require.Empty(t, s.name(t), "another file")
			s.place(t, s.debug, at+linkName)
			require.Equal(t, "hidden", s.name(t), at)
			require.NoError(t, os.Remove(s.root+at+linkName))
		}
	}
}

// container is a process that maps a library of an image that others map, too, and sees other
// files beside it.
type container struct {
	opener
	host  string // below it is what we see
	gone  bool
	paths []string // that were opened below the root of the container
}

func (c *container) Path() string { return "/opt/lib/p.so" }

func (c *container) Open() (Contents, int64, error) { return c.opener.Open() }

func (c *container) OpenPath(root Root, path string) (Contents, int64, error) {
	if root == HostRoot {
		return (&opener{path: c.host + path}).Open()
	}
	c.paths = append(c.paths, path)
	if c.gone {
		return nil, 0, procfs.ErrNoProcess
	}
	return c.opener.OpenPath(root, path)
}

// A debug file that is found in a container names the functions of processes of that
// container, though others map the same file.
func TestDebugFileOfContainer(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id")
	s.link(t)
	at := debugDir + "/.build-id/" + s.buildID[:2] + "/" + s.buildID[2:] + ".debug"
	host := t.TempDir()
	in := func(name string, owner Owner) *container {
		c := &container{opener: opener{path: s.root + s.path, root: t.TempDir(), owner: owner}, host: host}
		if name != "" {
			renamed := filepath.Join(t.TempDir(), linkName)
			tool(t, "objcopy", "--redefine-sym=hidden="+name, s.debug, renamed)
			(&split{root: c.root}).place(t, renamed, at)
		}
		return c
	}
	now := time.Now()
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	name := func(c *Cache[int], of *container) string {
		fn, _ := lookup(c, 1, of, s.hidden)
		return fn.Name
	}
	hostile := in("forged", Owner{Container: "a", Cgroup: "/a"})
	others := []*container{
		in("", Owner{Container: "b", Cgroup: "/b"}),
		in("mine", Owner{Container: "c", Cgroup: "/c"}),
		in("", Owner{Container: "a", Cgroup: "/a", UID: 1}),
		in("", Owner{Container: "a", Cgroup: "/d/a"}), // one of the two imitates the other
		in("", Owner{Cgroup: "/e"}),
	}
	for range 3 {
		require.Equal(t, "forged", name(c, hostile))
		for i, other := range others {
			want := ""
			if i == 1 {
				want = "mine"
			}
			require.Equal(t, want, name(c, other), i)
		}
	}
	require.Len(t, hostile.paths, 1)
	require.Len(t, others[0].paths, 4, "looked for once")
	again := in("", hostile.owner)
	require.Equal(t, "forged", name(c, again), "the same container")
	require.Empty(t, again.paths)
	require.Zero(t, c.Stats().Failures)

	// Of whom the process has gone, it is not asked again for a while.
	late := in("late", Owner{Container: "f"})
	late.gone = true
	for range 3 {
		require.Empty(t, name(c, late))
	}
	require.Len(t, late.paths, 1)
	late.gone = false
	now = now.Add(retryAfter)
	require.Equal(t, "late", name(c, late))
	require.Zero(t, c.Stats().Failures)

	// Another process is asked at once, but not any number of them.
	gone := func(pid int) *container {
		c := in("there", Owner{Container: "h", PID: pid})
		c.gone = true
		return c
	}
	require.Empty(t, name(c, gone(1)))
	require.Equal(t, "there", name(c, in("there", Owner{Container: "h", PID: 2})))
	c = NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	asked := 0
	for pid := range 2 * maxGone {
		g := gone(pid)
		require.Empty(t, name(c, g))
		asked += len(g.paths)
	}
	require.Equal(t, maxGone, asked)
	now = now.Add(retryAfter)
	require.Equal(t, "there", name(c, in("there", Owner{Container: "h", PID: maxGone})))
	require.Zero(t, c.Stats().Failures)

	// The directory of the library is on the host what a container says.
	(&split{root: host}).place(t, s.debug, "/opt/lib/"+linkName)
	c = NewCache[int](CacheOptions{Wait: time.Minute})
	require.Empty(t, name(c, in("", Owner{Container: "g"})))

	// What the host has installed holds for all, and goes before what a container has.
	for _, installed := range []string{debugDir + "/opt/lib/" + linkName, at} {
		(&split{root: host}).place(t, s.debug, installed)
		c = NewCache[int](CacheOptions{Wait: time.Minute})
		for _, of := range append(others, hostile) {
			of.paths = nil
			require.Equal(t, "hidden", name(c, of))
			require.Empty(t, of.paths)
		}
		require.Equal(t, 1, c.Stats().Files)
		require.NoError(t, os.Remove(host+installed))
	}
}

// mounted is a process that has the library where others have it not.
type mounted struct {
	container
	path  string
	tried []string // that were opened below our root
}

func (m *mounted) Path() string { return m.path }

func (m *mounted) OpenPath(root Root, path string) (Contents, int64, error) {
	if root == HostRoot {
		m.tried = append(m.tried, path)
	}
	return m.container.OpenPath(root, path)
}

// A debug file that the host has for where a file is does not depend on where it was for who had it read first.
func TestDebugFileOfFileElsewhere(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id=none")
	s.link(t)
	host := t.TempDir()
	(&split{root: host}).place(t, s.debug, debugDir+"/opt/lib/"+linkName)
	c := NewCache[int](CacheOptions{Wait: time.Minute})
	as := func(uid uint32, path string) (name string, tried []string) {
		m := &mounted{container: container{opener: opener{path: s.root + s.path, root: t.TempDir(), owner: Owner{UID: uid}}, host: host}, path: path}
		fn, _ := lookup(c, 1, m, s.hidden)
		return fn.Name, m.tried
	}
	for range 3 {
		name, _ := as(1000, "/x/p.so")
		require.Empty(t, name)
		name, _ = as(0, "/opt/lib/../lib/p.so")
		require.Equal(t, "hidden", name)
	}
	for _, again := range []string{"/x/p.so", "/y/p.so", "/opt/lib/p.so"} {
		_, tried := as(1000, again)
		require.Empty(t, tried, "once for each user")
	}
	for i, nowhereElse := range []string{"/x/p.so", "", "relative/p.so"} {
		name, tried := as(uint32(1001+i), nowhereElse)
		require.Empty(t, name)
		require.Empty(t, tried)
	}
	require.Zero(t, c.Stats().Failures)
}

// Something else than a file in its place, or one that is changed by a byte.
func TestDebugFileHostile(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id=none")
	s.link(t)
	at := s.root + "/opt/lib/" + linkName
	data, err := os.ReadFile(s.debug)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(at, data, 0o644))
	require.Empty(t, s.name(t), "checksum")
	require.NoError(t, os.WriteFile(at, []byte("\x7fELF"), 0o644))
	require.Empty(t, s.name(t))
	require.NoError(t, os.Truncate(at, maxChecksumBytes+1))
	require.Empty(t, s.name(t))
	require.NoError(t, os.Remove(at))
	require.NoError(t, unix.Mkdir(at, 0o755))
	require.Empty(t, s.name(t))
}

func TestParseDebugLink(t *testing.T) {
	for text, want := range map[string]string{
		"abc\x00\x01\x02\x03\x04":              "abc",
		"abcd\x00\x00\x00\x00\x01\x02\x03\x04": "abcd",
		"":                                     "", "abc": "", "abc\x00": "", "abc\x00\x01\x02\x03": "",
		"\x00\x00\x00\x00\x01\x02\x03\x04": "", "a/b\x00\x01\x02\x03\x04": "", "..\x00\x00\x01\x02\x03\x04": "",
	} {
		name, sum, ok := parseDebugLink([]byte(text))
		require.Equal(t, want, name, "%q", text)
		require.Equal(t, want != "", ok)
		if ok {
			require.EqualValues(t, 0x04030201, sum)
		}
	}
}

// withDebugData adds packed symbols to a stripped file as distributions do.
func (s *split) withDebugData(t testing.TB, packed []byte) {
	at := filepath.Join(t.TempDir(), "packed")
	require.NoError(t, os.WriteFile(at, packed, 0o644))
	tool(t, "objcopy", "--add-section", ".gnu_debugdata="+at, s.root+s.path)
}

func pack(t testing.TB, data []byte, args ...string) []byte {
	cmd := exec.Command("xz", append([]string{"-c"}, args...)...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

func TestDebugData(t *testing.T) {
	s := newSplit(t)
	mini := filepath.Join(t.TempDir(), "mini")
	tool(t, "objcopy", "-S", "--remove-section=.comment", "--keep-symbol=hidden", s.debug, mini)
	data, err := os.ReadFile(mini)
	require.NoError(t, err)
	s.withDebugData(t, pack(t, data))
	require.Equal(t, "hidden", s.name(t))
	// What is exported has its name still.
	f, e := open(t, s.root+s.path)
	defer f.Close()
	sym, ok, err := e.DynamicSymbol("visible")
	require.NoError(t, err)
	require.True(t, ok)
	fn, ok := lookup(NewCache[int](CacheOptions{Wait: time.Minute}), 1, &opener{path: s.root + s.path}, sym.Value)
	require.True(t, ok)
	require.Equal(t, "visible", fn.Name)
}

// A separate debug file goes before packed symbols.
func TestDebugFileFirst(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id")
	renamed := filepath.Join(t.TempDir(), "renamed")
	tool(t, "objcopy", "--redefine-sym=hidden=packed", s.debug, renamed)
	data, err := os.ReadFile(renamed)
	require.NoError(t, err)
	s.withDebugData(t, pack(t, data))
	require.Equal(t, "packed", s.name(t))
	s.place(t, s.debug, debugDir+"/.build-id/"+s.buildID[:2]+"/"+s.buildID[2:]+".debug")
	require.Equal(t, "hidden", s.name(t))
}

// packedAt is a library whose .gnu_debugdata is read when wait is closed.
type packedAt struct {
	rooted
	offset int64
	wait   chan struct{}
}

type packedContents struct {
	Contents
	p *packedAt
}

func (p *packedAt) Open() (Contents, int64, error) {
	f, size, err := p.rooted.Open()
	return packedContents{f, p}, size, err
}

func (c packedContents) ReadAt(b []byte, off int64) (int, error) {
	if off == c.p.offset {
		<-c.p.wait
	}
	return c.Contents.ReadAt(b, off)
}

// withPacked returns a library with packed symbols, and so many bytes behind them.
func withPacked(t *testing.T, more int) (s *split, at int64) {
	s = newSplit(t)
	data, err := os.ReadFile(s.debug)
	require.NoError(t, err)
	s.withDebugData(t, append(pack(t, data), make([]byte, more)...))
	f, e := open(t, s.root+s.path)
	defer f.Close()
	section, ok, err := e.Section(".gnu_debugdata")
	require.NoError(t, err)
	require.True(t, ok)
	return s, int64(section.Offset)
}

// A file whose packed symbols are never read keeps no other from being unpacked.
func TestDebugDataHangs(t *testing.T) {
	s, at := withPacked(t, 0)
	synctest.Test(t, func(t *testing.T) {
		c := NewCache[int](CacheOptions{Wait: time.Second, blocked: func(int) bool { return true }})
		of := func(wait chan struct{}) *packedAt {
			return &packedAt{rooted{opener{path: s.root + s.path, root: s.root}, s.path}, at, wait}
		}
		hangs, answers := make(chan struct{}), make(chan struct{})
		close(answers)
		_, ok := lookup(c, 1, of(hangs), s.hidden)
		require.False(t, ok)
		fn, ok := lookup(c, 2, of(answers), s.hidden)
		require.True(t, ok, "the same user's")
		require.Equal(t, "hidden", fn.Name)
		close(hangs)
		synctest.Wait()
		_, ok = lookup(c, 1, of(answers), s.hidden)
		require.True(t, ok)
		require.Empty(t, c.packed.users)
	})
}

// Packed symbols for which there is no room are read a minute later; until then the file has
// the names that it has without them.
func TestDebugDataWithoutRoom(t *testing.T) {
	s, _ := withPacked(t, packedLimits().free)
	f, e := open(t, s.root+s.path)
	defer f.Close()
	sym, ok, err := e.DynamicSymbol("visible")
	require.NoError(t, err)
	require.True(t, ok)
	now := time.Now()
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	o := &rooted{opener{path: s.root + s.path, root: s.root}, s.path}
	others := c.packed.begin(Owner{})
	require.True(t, others.has(packedLimits().free+packedLimits().place))
	for range 3 {
		_, ok = lookup(c, 1, o, s.hidden)
		require.False(t, ok)
		fn, ok := lookup(c, 1, o, sym.Value)
		require.True(t, ok)
		require.Equal(t, "visible", fn.Name)
	}
	require.EqualValues(t, 1, o.opens.Load())
	others.end()
	now = now.Add(retryAfter)
	fn, _ := lookup(c, 1, o, s.hidden)
	require.Equal(t, "hidden", fn.Name)
}

// Symbols for which there is no room while others are read are read later.
func TestTableWithoutRoom(t *testing.T) {
	s := newSplit(t)
	now := time.Now()
	c := NewCache[int](CacheOptions{Wait: time.Minute, Now: func() time.Time { return now }})
	c.tables.limits.free = 0
	o := &opener{path: s.root + s.path}
	f, e := open(t, o.path)
	defer f.Close()
	sym, ok, err := e.DynamicSymbol("visible")
	require.NoError(t, err)
	require.True(t, ok)
	others := c.tables.begin(Owner{})
	require.True(t, others.has(tableLimits().place))
	for range 3 {
		_, ok = lookup(c, 1, o, sym.Value)
		require.False(t, ok)
	}
	require.EqualValues(t, 1, o.opens.Load())
	require.EqualValues(t, 1, c.Stats().Failures)
	others.end()
	now = now.Add(retryAfter)
	fn, _ := lookup(c, 1, o, sym.Value)
	require.Equal(t, "visible", fn.Name)
	require.Empty(t, c.tables.users)
}
