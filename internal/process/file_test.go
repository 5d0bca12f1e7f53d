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

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

const pauser = target.Common + `int main(void) { puts("1"); fflush(stdout); await(); return 0; }`

// fileOf returns the file of a running program.
func fileOf(t *testing.T, table *Table, p *program) *executable.File {
	t.Helper()
	var ready int
	p.Line(&ready)
	for _, m := range loaded(t, table, p.exists()).Info().Mappings {
		if m.Path == p.Path {
			require.NotNil(t, m.File)
			return m.File
		}
	}
	require.Fail(t, "not mapped", p.Path)
	return nil
}

func contents(t *testing.T, f *executable.File) []byte {
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
	p.Stop()
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

	first.Stop()
	for range 2 {
		fileOf(t, table, start(t, compile(t, "p", pauser)))
	}
	require.NotEmpty(t, contents(t, f), "opened again by its path")
	require.NoError(t, os.WriteFile(f.Path()+"2", []byte("x"), 0o644))
	require.NoError(t, os.Rename(f.Path()+"2", f.Path()))
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
	info := table.Lookup(p.id(), p.PID, nobody, nil).Info()
	require.Equal(t, path, info.Path)
	require.Equal(t, "p", info.Name)
}

// TestStrangeFiles maps what is no ELF file executable.
func TestStrangeFiles(t *testing.T) {
	whole, err := os.ReadFile(compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+definer, "-rdynamic", "-DVARIABLE=custom_labels_current_set"))
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
			p := start(t, compile(t, "p", target.Common+`
#include <fcntl.h>
int main(int argc, char **argv) {
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);
	say(at); await();
}`), path)
			var tp, at uint64
			p.Line(&tp, &at)
			r := newRecorder()
			table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
			info := loaded(t, table, p.exists()).Info()
			m := info.Mapping(at)
			require.NotNil(t, m)
			require.Equal(t, validUTF8(path), m.Path)
			require.NotNil(t, m.File)
			require.NotEmpty(t, m.File.HTLHash())
			for _, s := range info.Sources {
				require.NotEqual(t, labelsource.Active, s.State)
			}
			sources, known := r.of(p.id())
			require.True(t, known)
			require.Empty(t, sources)
		})
	}
}

// TestDamagedSymbolIsCounted once for the file, in however many processes.
func TestDamagedSymbolIsCounted(t *testing.T) {
	path := compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+definer, "-rdynamic", "-DVARIABLE=custom_labels_current_set")
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
		p.Line(&tp, &variable)
		ev := p.exists()
		info := loaded(t, table, ev).Info()
		require.Len(t, info.Sources, 1)
		require.Equal(t, labelsource.Unreadable, info.Sources[0].State)
		sources, known := r.of(ev.Process)
		require.True(t, known)
		require.Empty(t, sources)
		require.EqualValues(t, 1, table.Stats().FileErrors)
	}
}

func TestDeadLeader(t *testing.T) {
	path := compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+target.Common+`
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
	p.Line(&tp, &variable)
	r := newRecorder()
	table := runTable(t, Options{Publisher: r, RescanInterval: quiet})
	ev := p.exists()
	info := loaded(t, table, ev).Info()
	require.Equal(t, path, info.Path)
	sources, _ := r.of(ev.Process)
	require.Len(t, sources, 1)
}
