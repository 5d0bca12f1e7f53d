package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The owner of a file is its user, whatever group it is of.
func TestOpenPathOwner(t *testing.T) {
	testutil.RequireRoot(t)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, nil, 0o640))
	require.NoError(t, os.Chown(path, 1234, 5678))
	file, info, err := FS{}.OpenPath(os.Getpid(), OurRoot, path, 0)
	require.NoError(t, err)
	defer file.Close()
	require.EqualValues(t, 1234, info.UID)
	require.Zero(t, info.User)
}

// What is said of a file's name is not read out of a mapping that is no file: System V
// shared memory of id 0 has the inode 0.
func TestMappingsOfNoFile(t *testing.T) {
	for line, want := range map[string]Mapping{
		"1000-2000 rw-s 00000000 00:01 0    /SYSV00000000 (deleted)": {Path: "/SYSV00000000 (deleted)", Perms: PermRead | PermWrite | PermShared},
		"1000-2000 rw-s 00000000 00:01 5    /SYSV00000000 (deleted)": {Path: "/SYSV00000000", Inode: 5, Perms: PermRead | PermWrite | PermShared},
	} {
		want.Start, want.Limit, want.Dev = 0x1000, 0x2000, 1
		new(MappingReader).read(strings.NewReader(line+"\n"), func(m Mapping, err error) bool {
			require.NoError(t, err)
			require.Equal(t, want, m)
			return true
		})
	}
}

// A number has digits, and no more than 64 bits.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]uint64{"ffffffffffffffff-": 1<<64 - 1, "0-": 0, "00000000000000001-": 1} {
		f := fields{line: []byte(text)}
		require.Equal(t, want, f.number(16, '-'))
		require.NoError(t, f.err)
	}
	for _, text := range []string{"10000000000000000-", "fffffffffffffffff-", "-", "1", ""} {
		f := fields{line: []byte(text)}
		require.Zero(t, f.number(16, '-'), text)
		require.Error(t, f.err, text)
	}
	f := fields{line: []byte("18446744073709551616 ")}
	require.Zero(t, f.number(10, ' '))
	require.Error(t, f.err)
	f = fields{line: []byte(" 5")}
	require.Zero(t, f.number(10, ' '))
	require.Error(t, f.err, "there is none before the space")
}

// The main thread is first, also when the ids of the others are lower, in whatever order
// the directory has them.
func TestMainThreadIsFirst(t *testing.T) {
	f := FS{Root: t.TempDir()}
	for _, pid := range []int{5, 50, 500, 5000, 50000} {
		task := filepath.Join(f.Root, strconv.Itoa(pid), "task")
		want := []int{pid}
		for tid := 1; tid <= 12; tid++ {
			if tid != pid {
				want = append(want, tid)
			}
			require.NoError(t, os.MkdirAll(filepath.Join(task, strconv.Itoa(tid)), 0o755))
		}
		require.NoError(t, os.MkdirAll(filepath.Join(task, strconv.Itoa(pid)), 0o755))
		tids, more, err := f.Threads(pid, 100)
		require.NoError(t, err)
		require.False(t, more)
		require.Equal(t, want, tids)
	}
}
