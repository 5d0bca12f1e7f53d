package symbol

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// beside is a library in a container that has a large file wherever the debug file may be.
type beside struct {
	rooted
	head  []byte // of that, zeros follow
	size  int64
	bytes int64 // that were read of it
	each  func()
}

func (b *beside) OpenPath(root Root, _ string) (Contents, int64, error) {
	if root == HostRoot {
		return nil, 0, os.ErrNotExist
	}
	return besideContents{b}, b.size, nil
}

type besideContents struct{ *beside }

func (besideContents) Close() error { return nil }

func (b besideContents) ReadAt(p []byte, off int64) (int, error) {
	p = p[:min(int64(len(p)), b.size-off)]
	clear(p)
	if off < int64(len(b.head)) {
		copy(p, b.head[off:])
	}
	b.bytes += int64(len(p))
	b.each()
	return len(p), nil
}

// To find a debug file by its checksum is a part of reading a file: it ends when that has to, and takes no more for
// many files than for one.
func TestChecksumBounded(t *testing.T) {
	s := newSplit(t, "-Wl,--build-id=none")
	s.link(t)
	head, err := os.ReadFile(s.debug)
	require.NoError(t, err)
	src := &beside{rooted: rooted{opener{path: s.root + s.path}, s.path}, head: head, size: 100 << 20, each: func() {}}
	begin := func(of *functions) *loader {
		src.bytes = 0
		return &loader{
			src: src, maxBytes: 1 << 20, packed: newRoom(packedLimits()), tables: newRoom(tableLimits()), of: of,
			closed: &atomic.Bool{},
		}
	}
	file, err := begin(nil).load()
	require.NoError(t, err)
	require.NotNil(t, file.debug)

	none, err := begin(file).load()
	require.NoError(t, err)
	require.Zero(t, none.table.Len())
	require.Greater(t, src.bytes, src.size)
	require.LessOrEqual(t, src.bytes, int64(maxChecksumBytes))

	l, steps, enough := begin(file), 0, errors.New("enough")
	l.pace = func() error {
		if steps++; steps > 16 {
			return enough
		}
		return nil
	}
	_, err = l.load()
	require.ErrorIs(t, err, enough)
	require.Less(t, src.bytes, int64(2<<20))

	l = begin(file)
	src.each = func() {
		if src.bytes > 1<<20 {
			l.closed.Store(true)
		}
	}
	_, err = l.load()
	require.ErrorIs(t, err, errClosed)
	require.Less(t, src.bytes, int64(2<<20))
}
