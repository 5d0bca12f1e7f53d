//go:build linux

package executable

import (
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/target"
)

// faulting is a disk that does not read beyond the first bytes of a file, apart from its end.
type faulting struct {
	data []byte
	good int64
}

func (f *faulting) ReadAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); end > f.good && end < int64(len(f.data)) {
		return 0, unix.EIO
	}
	return bytes.NewReader(f.data).ReadAt(p, off)
}

// What could not be read for the disk's sake is told apart from what the file says.
func TestFault(t *testing.T) {
	data := contentsOf(t, target.Library(t, target.DefineV1, "custom_labels_current_set"))
	k, err := ReadFacts(t.Context(), &faulting{data, htlPart}, int64(len(data)))
	require.NoError(t, err)
	require.ErrorIs(t, k.Fault, unix.EIO)
	require.NotEmpty(t, k.HTLHash)
	k, err = ReadFacts(t.Context(), bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.NoError(t, k.Fault)
	require.Len(t, k.Plans, 1)
	k, err = ReadFacts(t.Context(), bytes.NewReader(data), int64(len(data))+1)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, k.Fault, "a file that ends early")
}

// A file that had a fault is read again, by one who asks for it, and less and less often.
func TestFaultyFileIsReadAgain(t *testing.T) {
	at := placeOf(t, target.Start(t, target.Compile(t, "p", pauser)))
	c := newCache(t)
	now := int64(1e9)
	c.now = func() int64 { return now }
	key, err := procfs.FS{}.StatMapped(at.pid, at.mapping)
	require.NoError(t, err)
	fails := func() *File { // it could not be read
		f := c.file(key, at.mapping.Path, 0)
		f.once.Do(func() { f.facts = Facts{HTLHash: "of head and tail", Fault: unix.EIO} })
		return f
	}
	of := func() *File {
		f, err := c.of(at.pid, at.owner, at.mapping)
		require.NoError(t, err)
		return f
	}
	faulty := fails()
	require.False(t, c.readsAgain(faulty, true), "just read")
	for gap := backoffGap; gap < 10*time.Second; gap *= 2 {
		require.Same(t, faulty, of(), "too soon")
		now += int64(gap) - 1
		require.Same(t, faulty, of(), "too soon")
		now++
		require.True(t, c.renews(faulty, false))
		require.False(t, c.renews(faulty, false), "one reads it")
		faulty = fails()
		require.False(t, c.readsAgain(faulty, true))
	}
	now += int64(backoffGap) << maxBackoff
	whole := of()
	require.NotSame(t, faulty, whole)
	require.NoError(t, whole.facts.Fault)
	require.Empty(t, c.faulty)
	require.Same(t, whole, of())
	require.Equal(t, 1, c.Len())
}

// What is remembered of faults is bounded, and so is the time between two tries.
func TestFaultsAreBounded(t *testing.T) {
	c := NewCache(Options{MaxFiles: 3})
	for i := range uint64(10) {
		f := NewFile(procfs.FileID{Inode: i}, "", Facts{Fault: unix.EIO}, nil)
		require.False(t, c.readsAgain(f, true))
		require.LessOrEqual(t, len(c.faulty), 3)
	}
	var b Backoff
	require.True(t, b.Due(0))
	for range 100 {
		b = b.Next(0)
	}
	require.Equal(t, int64(backoffGap)<<maxBackoff, b.ns)
}

// countedReads counts the bytes that are read of a file, and tells of each read.
type countedReads struct {
	data []byte
	seen func(bytes int)
}

func (c *countedReads) ReadAt(p []byte, off int64) (int, error) {
	c.seen(len(p))
	return bytes.NewReader(c.data).ReadAt(p, off)
}

// A receiver that ends has the reading of files end, and learns nothing of them.
func TestReadingEnds(t *testing.T) {
	data := contentsOf(t, testutil.BuildGoWriters(t)[0])
	all := 0
	k, err := ReadFacts(t.Context(), &countedReads{data, func(n int) { all += n }}, int64(len(data)))
	require.NoError(t, err)
	require.NotEmpty(t, k.Plans)

	ctx, cancel := context.WithCancel(t.Context())
	some := 0
	k, err = ReadFacts(ctx, &countedReads{data, func(n int) {
		if some += n; some > all/2 {
			cancel()
		}
	}}, int64(len(data)))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, k)
	require.Less(t, some, all)
}

// A file that is being read then is forgotten.
func TestCacheEnds(t *testing.T) {
	at := placeOf(t, target.Start(t, target.Compile(t, "p", pauser)))
	c := newCache(t)
	c.End()
	_, err := c.of(at.pid, at.owner, at.mapping)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, c.Len())
}
