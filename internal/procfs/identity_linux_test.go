package procfs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A file that is written anew is another file, whatever of it stays the same.
func TestFileIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("one"), 0o600))
	identity := func(change func(*unix.Stat_t)) FileID {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		change(&st)
		id, err := regular(&st)
		require.NoError(t, err)
		return id
	}
	same := func(*unix.Stat_t) {}
	first := identity(same)
	require.Equal(t, first, identity(same))
	for name, change := range map[string]func(*unix.Stat_t){
		"device": func(st *unix.Stat_t) { st.Dev++ },
		"inode":  func(st *unix.Stat_t) { st.Ino++ },
		"size":   func(st *unix.Stat_t) { st.Size++ },
	} {
		require.NotEqual(t, first, identity(change), name)
	}
	// Clocks of file systems are as coarse as their ticks.
	require.Eventually(t, func() bool {
		require.NoError(t, os.WriteFile(path, []byte("two"), 0o600))
		return first != identity(same)
	}, time.Minute, time.Millisecond, "contents of the same size")
	_, err := regular(&unix.Stat_t{Mode: unix.S_IFCHR})
	require.ErrorIs(t, err, ErrNotRegular)
}
