//go:build linux

package process

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

// settled looks again until nothing is being loaded any more.
func (l *looker) settled() *look {
	l.t.Helper()
	var got *look
	eventually(l.t, "a look that has all", func() bool { got = l.again(); return !got.loading })
	return got
}

// A library that gets another link, or is removed, has no other sources than before, and in the same order.
func TestChangedLibraryKeepsItsSource(t *testing.T) {
	args := []string{}
	for range 3 {
		args = append(args, target.Library(t, target.DefineV1, "custom_labels_current_set", "-Wl,-Bsymbolic"))
	}
	p := start(t, compile(t, "p", loadsAll), args...)
	var ready int
	p.Line(&ready)
	l := newLooker(t, p, Options{})
	before := l.settled()
	require.Len(t, before.sources, len(args))
	for _, change := range []func(string) error{func(path string) error { return os.Link(path, path+".link") }, os.Remove} {
		for _, library := range []string{args[2], args[0]} {
			require.NoError(t, change(library))
			got := l.again()
			require.True(t, got.changed, "it has another time of change")
			require.Equal(t, before.sources, got.sources)
			require.Equal(t, before.info.order, got.info.order)
			require.Equal(t, succession{}, got.succession)
			require.False(t, got.loading)
		}
	}
}

// Memory that a process shares and generates code in changes all the time, and stays what it is.
func TestGeneratedCodeInSharedMemoryStays(t *testing.T) {
	p := start(t, compile(t, "p", target.Common+`
#include <sys/stat.h>
#define PAGE 0x10000
int main(void) {
	int fd = memfd_create("jit", 0);
	char *writable;
	if (fd < 0 || ftruncate(fd, 8 * PAGE)) return 1;
	writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (int i = 0;; i++) {
		struct stat before, after;
		if (fstat(fd, &before)) return 1;
		do { /* until the clock of files has gone on */
			writable[i * 16]++; /* the first write to a page that is clean changes the file's time */
			msync(writable, PAGE, MS_SYNC);
			if (ftruncate(fd, 8 * PAGE) || fstat(fd, &after)) return 1;
		} while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
		if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, i % 8 * PAGE) == MAP_FAILED) return 1;
		mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0); /* so that they are not one */
		puts("1"); fflush(stdout); await();
	}
}`))
	var ready int
	p.Line(&ready)
	l := newLooker(t, p, Options{})
	views := func(got *look) []executable.Mapping {
		return slices.DeleteFunc(slices.Clone(got.info.Mappings), func(m executable.Mapping) bool { return !strings.Contains(m.Path, "jit") })
	}
	id := func(got *look) procfs.FileID {
		for m, err := range l.opts.FS.Mappings(p.PID) {
			require.NoError(t, err)
			if strings.Contains(m.Path, "jit") {
				id, err := l.opts.FS.StatMapped(p.PID, m)
				require.NoError(t, err)
				return id
			}
		}
		return procfs.FileID{}
	}
	got := l.again()
	first := views(got)
	require.Len(t, first, 1)
	for i := range 3 {
		before := id(got)
		p.Tell()
		p.Line(&ready)
		got = l.again()
		require.NotEqual(t, before, id(got), "it has another time of change")
		all := views(got)
		require.Len(t, all, i+2)
		for j := range all {
			require.Same(t, first[0].File, all[j].File)
			require.Equal(t, all[j].Limit-all[j].Start, first[0].Limit-first[0].Start)
		}
		require.Equal(t, succession{}, got.succession)
	}
	again := l.again()
	require.False(t, again.changed)
	require.Equal(t, got.info.Mappings, again.info.Mappings)
}

// Code that is moved to memory without a file is the file's as before.
func TestMovedCode(t *testing.T) {
	path := compile(t, "p", "#include <stdint.h>\n"+target.DefineV1+target.Common+`
void move_code(void);
int main(void) {
	say(&VARIABLE); await();
	move_code();
	/* Other code, which is in no file: behind the program, and in memory of its own. */
	mmap(NULL, 0x10000, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	puts("1"); fflush(stdout); await();
}`, "../../testdata/unwind/moved.c", "-D_GNU_SOURCE", "-DMOVE_LATER", "-rdynamic", "-DVARIABLE="+record.ABIV1.Symbol())
	p := start(t, path)
	var tp, variable uint64
	p.Line(&tp, &variable)
	l := newLooker(t, p, Options{})
	code := func(got *look) executable.Mapping {
		i := slices.IndexFunc(got.info.Mappings, func(m executable.Mapping) bool { return m.Path == path })
		require.GreaterOrEqual(t, i, 0)
		return got.info.Mappings[i]
	}
	before := l.settled()
	want := code(before)
	require.False(t, want.Moved)
	p.Tell()
	var moved int
	p.Line(&moved)
	want.Moved = true
	for _, changed := range []bool{true, false} {
		got := l.again()
		require.Equal(t, want, code(got))
		require.Equal(t, changed, got.changed)
		require.Equal(t, succession{}, got.succession)
		requireSource(t, p, got.sources, record.ABIV1, tp, variable)
	}
	late := newLooker(t, p, Options{}).settled()
	require.Equal(t, want.Bias, code(late).Bias)
	require.True(t, code(late).Moved)
	requireSource(t, p, late.sources, record.ABIV1, tp, variable)
	n := 0
	for _, m := range late.info.Mappings {
		if m.Moved {
			n++
		}
	}
	require.Equal(t, 1, n)
}
