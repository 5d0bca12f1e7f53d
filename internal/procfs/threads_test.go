package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThreads(t *testing.T) {
	f := FS{Root: t.TempDir()}
	_, _, err := f.Threads(7, 10)
	require.ErrorIs(t, err, ErrNoProcess)
	for _, tid := range []int{30, 7, 200, 4} {
		require.NoError(t, os.MkdirAll(filepath.Join(f.Root, "7", "task", fmt.Sprint(tid)), 0o755))
	}
	tids, more, err := f.Threads(7, 4)
	require.NoError(t, err)
	require.Equal(t, []int{7, 4, 30, 200}, tids)
	require.False(t, more)
	tids, more, err = f.Threads(7, 2)
	require.NoError(t, err)
	require.Len(t, tids, 2)
	require.True(t, more)
}

func TestParseThreadFields(t *testing.T) {
	s, err := parseStatus([]byte("Tgid:\t12\nTracerPid:\t34\nUid:\t1\n"))
	require.NoError(t, err)
	require.Equal(t, Status{UID: 1, TGID: 12, TracerPID: 34}, s)
	for _, bad := range []string{"Tgid:\tx\nUid:\t1\n", "TracerPid:\t-1\nUid:\t1\n"} {
		_, err := parseStatus([]byte(bad))
		require.Error(t, err, "%q", bad)
	}
	for flags, made := range map[string]bool{"4194560": false, "4194576": true, "4210944": true} {
		st, err := parseStat([]byte("42 (x)" + strings.Replace(statTail, "4194560", flags, 1)))
		require.NoError(t, err)
		require.Equal(t, made, st.KernelMade)
	}
}
