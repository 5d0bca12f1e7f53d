package procfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const statTail = " S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 7 0 18446744073709551615 1 1 140737"

func TestParseStat(t *testing.T) {
	for _, comm := range []string{"sleep", "", "a) R 1 (b", "new\nline", ") (", "\xff\x00"} {
		st, err := parseStat([]byte("42 (" + comm + ")" + statTail))
		require.NoError(t, err, "%q", comm)
		require.Equal(t, Stat{Comm: comm, State: 'S', StartTicks: 98765, StartStack: 140737}, st)
	}
	st, err := parseStat([]byte("2 (kthreadd)" + strings.Replace(statTail, "4194560", "2129984", 1)))
	require.NoError(t, err)
	require.True(t, st.KernelThread)
	require.False(t, st.Ending)
	st, err = parseStat([]byte("42 (x)" + strings.Replace(statTail, "98765 7 0", "98765 0 0", 1)))
	require.NoError(t, err)
	require.True(t, st.Ending)
	for _, bad := range []string{"", "42", "42 (x", "42 )(", "42 (x) S 1", "42 (x)" + strings.Replace(statTail, "98765", "-1", 1), "42 (x)" + strings.Replace(statTail, "4194560", "-1", 1), "42 (x)" + strings.Replace(statTail, "140737", "-1", 1), "42 (x)" + strings.Replace(statTail, " 140737", "", 1)} {
		_, err := parseStat([]byte(bad))
		var format *FormatError
		require.ErrorAs(t, err, &format, "%q", bad)
	}
}

func TestParseStatus(t *testing.T) {
	s, err := parseStatus([]byte("Name:\tUid:\\n\nUid:\t1000\t0\t0\t0\nNSpid:\t4242\t17\t3\n"))
	require.NoError(t, err)
	require.Equal(t, Status{UID: 1000, NSPID: 3}, s)
	for _, bad := range []string{"", "Uid:\n", "Uid:\tx\n", "Uid:\t99999999999\n", "Uid:\t1\nNSpid:\tx\n"} {
		_, err := parseStatus([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
}

// A group whose number was cut off is none: another number would give the rights of others.
func TestStatusCutOff(t *testing.T) {
	s, err := parseStatus([]byte("Uid:\t1000\t0\t0\t0\nGid:\t1000\t0\t0\t0\nGroups:\t5 42"))
	require.NoError(t, err)
	require.Equal(t, []uint32{1000, 5}, s.GIDs)
}

func TestBootTimeOffset(t *testing.T) {
	root := t.TempDir()
	f := FS{Root: root}
	off, err := f.BootTimeOffset()
	require.NoError(t, err, "a kernel without time namespaces")
	require.Zero(t, off)

	require.NoError(t, os.Mkdir(filepath.Join(root, "self"), 0o755))
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, "self", "timens_offsets"), []byte(text), 0o644))
	}
	write("monotonic           7         0\nboottime          -3 500000000\n")
	off, err = f.BootTimeOffset()
	require.NoError(t, err)
	require.EqualValues(t, -2_500_000_000, off)
	off, err = f.MonotonicOffset()
	require.NoError(t, err)
	require.EqualValues(t, 7_000_000_000, off)
	write("boottime x 0\n")
	_, err = f.BootTimeOffset()
	require.Error(t, err)
}
