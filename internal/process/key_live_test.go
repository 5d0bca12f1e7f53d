//go:build linux && (amd64 || arm64)

package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The keys of files are the ones that events of an exec tell, also of what containers run.
func TestKeyOfExecEvent(t *testing.T) {
	testutil.RequireBPF(t)
	s, err := bpf.New(bpf.Config{SamplesPerSecond: 1, RingBufferBytes: bpf.MinRingBufferBytes, ReadDelay: time.Millisecond})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Follow())
	path := labelled(t)
	// A file system of its own, as overlays want no overlay below them.
	base := t.TempDir()
	require.NoError(t, unix.Mount("none", base, "tmpfs", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(base, unix.MNT_DETACH)) })
	dir := func(name string) string {
		path := filepath.Join(base, name)
		require.NoError(t, os.Mkdir(path, 0o755))
		return path
	}
	image := dir("image")
	require.NoError(t, os.CopyFS(image, os.DirFS(filepath.Dir(path))))
	dirs := map[string]string{"a file": image}
	if testutil.Can(t, testutil.Overlay) {
		upper, work, merged := dir("upper"), dir("work"), dir("merged")
		require.NoError(t, unix.Mount("none", merged, "overlay", 0, "lowerdir="+image+",upperdir="+upper+",workdir="+work))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(merged, unix.MNT_DETACH)) })
		dirs["of an image"] = merged
	}
	for name, dir := range dirs {
		t.Run(name, func(t *testing.T) {
			p := start(t, filepath.Join(dir, filepath.Base(path)))
			var tp, variable uint64
			p.Line(&tp, &variable)
			var told [1]record.Event
			for told[0].Kind != record.EventExec || told[0].PID != p.PID {
				_, err := s.ReadEvents(told[:])
				require.NoError(t, err)
			}
			l := newLooker(t, p, Options{NameFile: s.NameFile})
			got := l.again()
			requireSource(t, p, got.sources, record.ABIV1, tp, variable)
			require.True(t, l.certain(got, told[0].Program))
			told[0].Program.ChangedNsec++
			require.False(t, l.certain(got, told[0].Program))
		})
	}
}
