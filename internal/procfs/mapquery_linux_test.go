package procfs

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// oddMapper maps, in a directory, files of odd names and one at the bottom of so many directories.
const oddMapper = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/prctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void map(int fd, int perms, int flags)
{
	if (fd < 0 || ftruncate(fd, 4096) || mmap(NULL, 4096, perms, flags, fd, 0) == MAP_FAILED)
		abort();
}

int main(int argc, char **argv)
{
	char name[256];

	if (chdir(argv[1]))
		abort();
	map(open("new\nline", O_RDWR | O_CREAT, 0600), PROT_READ | PROT_EXEC, MAP_PRIVATE);
	map(open("back\\012slash", O_RDWR | O_CREAT, 0600), PROT_READ | PROT_WRITE, MAP_SHARED);
	map(open("gone", O_RDWR | O_CREAT, 0600), PROT_NONE, MAP_PRIVATE);
	unlink("gone");
	map(memfd_create("OTEL_CTX", 0), PROT_READ | PROT_WRITE, MAP_PRIVATE);
	char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mprotect(shared + 4096, 4096, PROT_READ);
	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, shared + 4096, 4096, "named"); /* where there is CONFIG_ANON_VMA_NAME */
	memset(name, 'x', 255);
	name[255] = 0;
	for (int i = 0; i < atoi(argv[2]); i++)
		if (mkdir(name, 0700) || chdir(name))
			abort();
	map(open("deep", O_RDWR | O_CREAT, 0600), PROT_READ, MAP_PRIVATE);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}`

// tellsMappings reports whether the kernel is 6.11 or newer.
func tellsMappings(t *testing.T) bool {
	t.Helper()
	var uts unix.Utsname
	require.NoError(t, unix.Uname(&uts))
	words := strings.SplitN(unix.ByteSliceToString(uts.Release[:]), ".", 3)
	major, err := strconv.Atoi(words[0])
	require.NoError(t, err)
	minor, err := strconv.Atoi(words[1])
	require.NoError(t, err)
	return major > 6 || major == 6 && minor >= 11
}

// What the kernel tells of mappings one by one is what it writes down of them; but names are what they are, and a path
// that is too long is left out.
func TestMappingQuery(t *testing.T) {
	pid := start(t, build(t, oddMapper), t.TempDir(), "20") // more than PATH_MAX
	file, err := FS{}.open(pid, "maps")
	require.NoError(t, err)
	defer file.Close()
	var told, written []Mapping
	list := func(to *[]Mapping) func(Mapping, error) bool {
		return func(m Mapping, err error) bool {
			require.NoError(t, err)
			*to = append(*to, m)
			return true
		}
	}
	var b MappingReader
	known := b.query(file, list(&told))
	require.Equal(t, tellsMappings(t), known)
	b.read(file, list(&written))
	written = slices.DeleteFunc(written, func(m Mapping) bool { return m.Path == "[vsyscall]" }) // no mapping
	require.Greater(t, len(written), 10)
	var through []Mapping
	for m, err := range (FS{}).Mappings(pid) {
		list(&through)(m, err)
	}
	through = slices.DeleteFunc(through, func(m Mapping) bool { return m.Path == "[vsyscall]" })
	if !known {
		require.Empty(t, told)
		require.Equal(t, written, through)
		return
	}
	require.Equal(t, told, through)
	odd := 0
	for i := range written {
		switch m := &written[i]; {
		case strings.HasSuffix(m.Path, "back\nslash"):
			m.Path = strings.Replace(m.Path, "\n", `\012`, 1)
			odd++
		case strings.HasSuffix(m.Path, "/deep"):
			require.Greater(t, len(m.Path), unix.PathMax)
			m.Path = ""
			odd++
		case strings.HasSuffix(m.Path, "new\nline"), m.Path == "/memfd:OTEL_CTX", strings.HasSuffix(m.Path, "/gone"):
			odd++
		}
	}
	require.Equal(t, 5, odd)
	require.Equal(t, written, told)
}

// What the kernel tells takes as long for a path of any length, and so much memory: as text, it writes it down as a
// whole.
func TestMappingQueryOfDeepPath(t *testing.T) {
	if !tellsMappings(t) {
		return // as text alone, which docs/security.md says
	}
	pid := start(t, build(t, oddMapper), t.TempDir(), "500")
	fastest := func(read func(*MappingReader, *os.File, func(Mapping, error) bool)) time.Duration {
		least := time.Hour
		var b MappingReader
		for range 10 {
			file, err := FS{}.open(pid, "maps")
			require.NoError(t, err)
			began := time.Now()
			read(&b, file, func(_ Mapping, err error) bool {
				require.NoError(t, err)
				return true
			})
			least = min(least, time.Since(began))
			require.NoError(t, file.Close())
		}
		return least
	}
	text := fastest(func(b *MappingReader, file *os.File, yield func(Mapping, error) bool) { b.read(file, yield) })
	query := fastest(func(b *MappingReader, file *os.File, yield func(Mapping, error) bool) { b.query(file, yield) })
	t.Log("as text", text, "one by one", query)
	require.Less(t, query, text/2)
}

// A process that has ended has no mappings any more.
func TestMappingQueryOfTheEnded(t *testing.T) {
	pid := start(t, build(t, pauser))
	file, err := FS{}.open(pid, "maps")
	require.NoError(t, err)
	defer file.Close()
	process, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	require.Eventually(t, func() bool {
		var b MappingReader
		n := 0
		known := b.query(file, func(_ Mapping, err error) bool {
			require.NoError(t, err)
			n++
			return true
		})
		require.Equal(t, tellsMappings(t), known)
		return n == 0
	}, time.Minute, time.Millisecond)
}
