package symbol

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKernelBuildID(t *testing.T) {
	sys := t.TempDir()
	write := func(path, id string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(sys+path), 0o755))
		notes := "\x04\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00Xen\x00ab\x00\x00" +
			"\x04\x00\x00\x00\x03\x00\x00\x00\x03\x00\x00\x00GNU\x00" + id + "\x00"
		require.NoError(t, os.WriteFile(sys+path, []byte(notes), 0o644))
	}
	require.Empty(t, KernelBuildID(sys, ""))
	write("/kernel/notes", "\x01\x02\x03")
	write("/module/ext4/notes/.note.gnu.build-id", "\xab\xcd\xef")
	require.Equal(t, "010203", KernelBuildID(sys, ""))
	require.Equal(t, "abcdef", KernelBuildID(sys, "ext4"))
	require.Empty(t, KernelBuildID(sys, "bpf"))
	require.Empty(t, KernelBuildID(sys, "../kernel"))
	if _, err := os.Stat("/sys/kernel/notes"); err == nil {
		require.Regexp(t, "^[0-9a-f]{32,}$", KernelBuildID("/sys", ""))
	}
}
