package procfs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func collect(t *testing.T, text string) ([]Mapping, error) {
	t.Helper()
	var got []Mapping
	var last error
	new(MappingReader).read(strings.NewReader(text), func(m Mapping, err error) bool {
		if last = err; err == nil {
			got = append(got, m)
		}
		return true
	})
	return got, last
}

func TestParseMappings(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want Mapping
	}{
		"library": {
			"7f0000000000-7f0000001000 r-xp 00002000 fe:01 1234                       /usr/lib/libc.so.6",
			Mapping{Start: 0x7f0000000000, Limit: 0x7f0000001000, Offset: 0x2000, Dev: 0xfe01, Inode: 1234, Perms: PermRead | PermExec, Path: "/usr/lib/libc.so.6"},
		},
		"anonymous": {
			"00400000-00401000 rw-p 00000000 00:00 0 ",
			Mapping{Start: 0x400000, Limit: 0x401000, Perms: PermRead | PermWrite},
		},
		"special": {
			"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
			Mapping{Start: 0xffffffffff600000, Limit: 0xffffffffff601000, Perms: PermExec, Path: "[vsyscall]"},
		},
		"deleted shared": {
			"7f00-8f00 rw-s 00000000 00:01 9 /memfd:OTEL_CTX (deleted)",
			Mapping{Start: 0x7f00, Limit: 0x8f00, Dev: 1, Inode: 9, Perms: PermRead | PermWrite | PermShared, Path: "/memfd:OTEL_CTX"},
		},
		"newline and spaces": {
			`1000-2000 r--p 00000000 00:01 9    /a b\012c `,
			Mapping{Start: 0x1000, Limit: 0x2000, Dev: 1, Inode: 9, Perms: PermRead, Path: "/a b\nc "},
		},
		"large device numbers": {
			"1000-2000 r--p 00000000 1234:56789 9 /x",
			Mapping{Start: 0x1000, Limit: 0x2000, Dev: 0x100056723489, Inode: 9, Perms: PermRead, Path: "/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, tc.line+"\n")
			require.NoError(t, err)
			require.Equal(t, []Mapping{tc.want}, got)
		})
	}
}

func TestParseMappingsRejects(t *testing.T) {
	for _, line := range []string{
		"", "x", "1000", "1000-", "1000-2000", "1000-2000 r-xp", "1000-2000 r-x 0 0:0 0",
		"2000-1000 r-xp 0 0:0 0", "1000-1000 r-xp 0 0:0 0", "1000-2000 r-xp 0 00 0",
		"11111111111111111-2 r-xp 0 0:0 0", "1000-2000 r-xp 0 0:0 a", "G-2000 r-xp 0 0:0 0",
	} {
		_, err := collect(t, line+"\n")
		var format *FormatError
		require.ErrorAs(t, err, &format, "%q", line)
	}
}

func TestMappingsOverlongPath(t *testing.T) {
	long := "1000-2000 r-xp 00000000 00:01 9 /" + strings.Repeat("x", 3*maxMapsLine)
	got, err := collect(t, long+"\n3000-4000 r--p 00000000 00:01 9 /y\n")
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, Mapping{Start: 0x1000, Limit: 0x2000, Dev: 1, Inode: 9, Perms: PermRead | PermExec}, got[0])
	require.Equal(t, "/y", got[1].Path)
}

func TestMappingsBound(t *testing.T) {
	line := []byte("1000-2000 r-xp 00000000 00:00 0\n")
	n := 0
	var last error
	new(MappingReader).read(io.MultiReader(bytes.NewReader(bytes.Repeat(line, MaxMappings)), bytes.NewReader(line)), func(_ Mapping, err error) bool {
		if last = err; err == nil {
			n++
		}
		return true
	})
	require.Equal(t, MaxMappings, n)
	require.ErrorIs(t, last, ErrTooManyMappings)
}

// endless is a path of any length.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Paths in directories that are nested for miles cost a bounded number of bytes.
func TestMappingsBytesBound(t *testing.T) {
	var tail endless
	head := "1000-2000 r-xp 00000000 00:01 9 /y\n3000-4000 r--p 00000000 00:01 9 /"
	var got []Mapping
	var last error
	new(MappingReader).read(io.MultiReader(strings.NewReader(head), &tail), func(m Mapping, err error) bool {
		if last = err; err == nil {
			got = append(got, m)
		}
		return true
	})
	require.ErrorIs(t, last, ErrTooManyMappings)
	require.Len(t, got, 1)
	require.Less(t, tail.read, maxMapsBytes+2*maxMapsLine)
}

// One process after the other is read with the same buffer.
func TestMappingsShareBuffer(t *testing.T) {
	var b MappingReader
	read := func() {
		b.read(strings.NewReader("1000-2000 r-xp 00000000 00:00 0\n"), func(Mapping, error) bool { return true })
	}
	first := testing.AllocsPerRun(3, func() {
		b = MappingReader{}
		read()
	})
	require.Less(t, testing.AllocsPerRun(3, read), first)
}

func TestMappingsShareStrings(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "%x-%x r-xp 00000000 00:01 9 /usr/lib/a-rather-long-library-name.so\n", i*0x1000, (i+1)*0x1000)
	}
	allocs := testing.AllocsPerRun(3, func() {
		new(MappingReader).read(strings.NewReader(text.String()), func(Mapping, error) bool { return true })
	})
	require.Less(t, allocs, 20.0)
}
