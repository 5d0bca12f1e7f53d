//go:build linux

package process

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const pauser = common + `int main(void) { puts("1"); fflush(stdout); await(); return 0; }`

// fileOf returns the file of a running program.
func fileOf(t *testing.T, table *Table, p *program) *File {
	t.Helper()
	var ready int
	p.line(&ready)
	for _, m := range loaded(t, table, p.exists()).Info().Mappings {
		if m.Path == p.path {
			require.NotNil(t, m.File)
			return m.File
		}
	}
	require.Fail(t, "not mapped", p.path)
	return nil
}

func contents(t *testing.T, f *File) []byte {
	t.Helper()
	file, size, err := f.Open()
	require.NoError(t, err)
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, 0, size))
	require.NoError(t, err)
	return data
}

func TestFileFacts(t *testing.T) {
	path := compile(t, "p", pauser, "-Wl,--build-id=sha1")
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	f := fileOf(t, table, start(t, path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, contents(t, f))
	require.Equal(t, path, f.Path())

	notes, err := exec.Command("readelf", "-n", path).Output()
	require.NoError(t, err)
	want := regexp.MustCompile(`Build ID: ([0-9a-f]{40})`).FindSubmatch(notes)
	require.NotNil(t, want)
	require.Equal(t, string(want[1]), f.BuildIDGNU())

	sum := sha256.New()
	sum.Write(data[:4096])
	sum.Write(data[len(data)-4096:])
	require.NoError(t, binary.Write(sum, binary.BigEndian, uint64(len(data))))
	require.Equal(t, hex.EncodeToString(sum.Sum(nil)[:16]), f.HTLHash())

	require.Same(t, f, fileOf(t, table, start(t, path)), "shared by processes")
}

// TestHTLHashSmall covers files in which head and tail overlap.
func TestHTLHashSmall(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 4097, 8192} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i * 7)
		}
		head, tail := data[:min(n, 4096)], data[max(0, n-4096):]
		all := append(append(append([]byte{}, head...), tail...), binary.BigEndian.AppendUint64(nil, uint64(n))...)
		want := sha256.Sum256(all)
		got, err := htlHash(bytes.NewReader(data), int64(n))
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(want[:16]), got)
	}
	_, err := htlHash(bytes.NewReader(nil), 10)
	require.Error(t, err, "the file has shrunk")
}

// TestOpenAfterExit reads a deleted file whose last process has exited.
func TestOpenAfterExit(t *testing.T) {
	path := compile(t, "p", pauser)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	p := start(t, path)
	f := fileOf(t, table, p)
	require.NoError(t, os.Remove(path))
	id := p.id()
	p.stop()
	table.HandleEvent(exit(id))
	require.Equal(t, data, contents(t, f))

	table.EndInterval()
	require.Equal(t, data, contents(t, f), "in the interval of the exit")
	require.NotZero(t, table.Stats().Descriptors)
	table.EndInterval()
	require.Zero(t, table.Stats().Descriptors, "it must not hold the file for ever")
	_, _, err = f.Open()
	require.Error(t, err)
}

func TestDescriptorsBounded(t *testing.T) {
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet, MaxDescriptors: 2})
	first := start(t, compile(t, "p", pauser))
	f := fileOf(t, table, first)
	for range 3 {
		fileOf(t, table, start(t, compile(t, "p", pauser)))
	}
	require.Equal(t, 2, table.Stats().Descriptors)
	require.NotEmpty(t, contents(t, f), "opened again by way of the process")
	require.Equal(t, 2, table.Stats().Descriptors)

	first.stop()
	for range 2 {
		fileOf(t, table, start(t, compile(t, "p", pauser)))
	}
	require.NotEmpty(t, contents(t, f), "opened again by its path")
	require.NoError(t, os.WriteFile(f.path+"2", []byte("x"), 0o644))
	require.NoError(t, os.Rename(f.path+"2", f.path))
	for range 2 {
		fileOf(t, table, start(t, compile(t, "p", pauser)))
	}
	_, _, err := f.Open()
	require.Error(t, err, "another file by now")
}

func TestFilesBounded(t *testing.T) {
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet, MaxFiles: 3})
	for range 3 {
		fileOf(t, table, start(t, compile(t, "p", pauser)))
	}
	require.Equal(t, 3, table.Stats().Files)
}

// TestDeletedExecutable has no path to find the file by.
func TestDeletedExecutable(t *testing.T) {
	path := compile(t, "p", pauser, "-Wl,--build-id=0x0123456789")
	p := start(t, path)
	require.NoError(t, os.Remove(path))
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	f := fileOf(t, table, p)
	require.Equal(t, "0123456789", f.BuildIDGNU())
	info := table.Lookup(p.id(), p.pid, nil).Info()
	require.Equal(t, path, info.Path)
	require.Equal(t, "p", info.Name)
}

// TestStrangeFiles maps what is no ELF file executable.
func TestStrangeFiles(t *testing.T) {
	whole, err := os.ReadFile(compile(t, "p", "#include <stdint.h>\n"+defineV1+definer, "-rdynamic", "-DVARIABLE=custom_labels_current_set"))
	require.NoError(t, err)
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"empty":          {},
		"text":           bytes.Repeat([]byte("x"), 5000),
		"magic":          []byte("\x7fELF"),
		"header":         whole[:64],
		"half":           whole[:len(whole)/2],
		"dynamic cut":    whole[:0x2e00],
		"32 bit":         append([]byte("\x7fELF\x01"), whole[5:]...),
		"new\nline \xff": []byte("y"),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(path, data, 0o644))
			p := start(t, compile(t, "p", common+`
#include <fcntl.h>
int main(int argc, char **argv) {
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
	say(at); await();
}`), path)
			var tp, at uint64
			p.line(&tp, &at)
			r := newRecorder()
			table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
			info := loaded(t, table, p.exists()).Info()
			m := info.Mapping(at)
			require.NotNil(t, m)
			require.Equal(t, validUTF8(path), m.Path)
			require.NotNil(t, m.File)
			require.NotEmpty(t, m.File.HTLHash())
			for _, s := range info.Sources {
				require.NotEqual(t, SourceActive, s.State)
			}
			sources, known := r.of(p.id())
			require.True(t, known)
			require.Empty(t, sources)
		})
	}
}

// TestDamagedSymbolIsCounted once for the file, in however many processes.
func TestDamagedSymbolIsCounted(t *testing.T) {
	path := compile(t, "p", "#include <stdint.h>\n"+defineV1+definer, "-rdynamic", "-DVARIABLE=custom_labels_current_set")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	for i, s := range symbols {
		if s.Name == "custom_labels_current_set" {
			value := f.Section(".dynsym").Offset + uint64(i+1)*elf.Sym64Size + 8
			binary.LittleEndian.PutUint64(data[value:], 1<<60)
		}
	}
	require.NoError(t, os.WriteFile(path, data, 0o755))
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	for range 2 {
		p := start(t, path)
		var tp, variable uint64
		p.line(&tp, &variable)
		ev := p.exists()
		info := loaded(t, table, ev).Info()
		require.Len(t, info.Sources, 1)
		require.Equal(t, SourceUnreadable, info.Sources[0].State)
		sources, known := r.of(ev.Process)
		require.True(t, known)
		require.Empty(t, sources)
		require.EqualValues(t, 1, table.Stats().FileErrors)
	}
}

func TestDeadLeader(t *testing.T) {
	path := compile(t, "p", "#include <stdint.h>\n"+defineV1+common+`
static void *run(void *leader) {
	pthread_join((pthread_t)leader, NULL);
	say(&custom_labels_current_set);
	await(); exit(0);
}
int main(void) {
	pthread_t t;
	pthread_create(&t, NULL, run, (void *)pthread_self());
	pthread_exit(NULL);
}`, "-rdynamic", "-pthread")
	p := start(t, path)
	var tp, variable uint64
	p.line(&tp, &variable)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	info := loaded(t, table, ev).Info()
	require.Equal(t, path, info.Path)
	sources, _ := r.of(ev.Process)
	require.Len(t, sources, 1)
}

// The files that were not mapped for the longest time give way, and their memory is free then.
func TestFilesGiveWay(t *testing.T) {
	memory := budget.NewMemory(1 << 30)
	c := newFiles(&fileOptions{}, 2, memory)
	key := func(inode uint64) procfs.FileID { return procfs.FileID{Inode: inode} }
	first, second := c.file(key(1), "/1"), c.file(key(2), "/2")
	held := memory.Part(budget.OfFiles)
	require.Same(t, first, c.file(key(1), "/1"))
	c.file(key(3), "/3")
	require.Equal(t, 2, c.len())
	require.Same(t, first, c.file(key(1), "/1"), "it was used after the second")
	require.NotSame(t, second, c.file(key(2), "/2"))
	require.Equal(t, held, memory.Part(budget.OfFiles))

	// For want of memory all go that no process maps and that have no rows.
	rows := newRows(1)
	used, ready := c.file(key(1), "/1"), c.file(key(2), "/2")
	used.users.Add(1)
	ready.rows.state = rowsReady
	require.Zero(t, c.dropUnused(rows))
	ready.rows.state = rowsUnknown
	require.Equal(t, 1, c.dropUnused(rows))
	require.Same(t, used, c.file(key(1), "/1"))
}

// A file that could not be read is read for the next process that maps it.
func TestUnreadableFileIsTriedAgain(t *testing.T) {
	path := compile(t, "p", pauser)
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	at := fileOf(t, table, start(t, path)).places.all()[0]
	c := newFiles(&fileOptions{fs: table.opts.FS, descriptors: newDescriptors(0)}, 10, nil)
	key, err := table.opts.FS.StatMapped(at.pid, at.mapping)
	require.NoError(t, err)
	c.file(key, path).load(c.firstOf) // nobody maps it yet
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	require.NotEmpty(t, f.HTLHash())
}

// A file is opened where any owner's process still maps it, whoever was seen last.
func TestOpenThroughOthers(t *testing.T) {
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	at := fileOf(t, table, start(t, compile(t, "p", pauser))).places.all()[0]
	elsewhere := fileOf(t, table, start(t, compile(t, "q", pauser))).places.all()[0]
	c := newFiles(&fileOptions{fs: table.opts.FS, descriptors: newDescriptors(0)}, 10, nil)
	f, err := c.of(at.pid, at.owner, at.mapping)
	require.NoError(t, err)
	version := f.places.version()
	for i := range uint32(maxPlaces - 1) {
		elsewhere.owner = owner{uid: 1000 + i}
		f.places.see(elsewhere)
		require.NotEqual(t, version, f.places.version())
		version = f.places.version()
		f.places.see(elsewhere)
		require.Equal(t, version, f.places.version(), "the same process")
		require.NotEmpty(t, contents(t, f))
	}
	require.Equal(t, at.pid, f.PID(at.owner.uid, at.owner.container))
	require.Zero(t, f.PID(at.owner.uid, "another"))
	elsewhere.owner.uid--
	elsewhere.owner.container = "another"
	f.places.see(elsewhere)
	require.Len(t, f.places.all(), maxPlaces)
	_, _, err = f.Open()
	require.ErrorIs(t, err, procfs.ErrReplaced)
}

// What a process maps now is not read for a file that it mapped before.
func TestOpenReplaced(t *testing.T) {
	path := compile(t, "p", pauser)
	table := runTable(t, Options{Publisher: newRecorder(), RescanInterval: quiet})
	now := fileOf(t, table, start(t, path))
	before := &File{key: now.key, path: now.path, opts: now.opts}
	before.key.CtimeNs--
	before.places.see(now.places.all()[0])
	_, _, err := before.Open()
	require.ErrorIs(t, err, procfs.ErrReplaced)
}
