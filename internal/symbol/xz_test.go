package symbol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// goOn never ends a decode.
func goOn() error { return nil }

// unpackedCopy unpacks, and copies what it is.
func unpackedCopy(packed []byte, most int) ([]byte, error) {
	b, free, err := unpack(packed, most, goOn)
	defer free()
	return bytes.Clone(b), err
}

func TestUnpack(t *testing.T) {
	noise := make([]byte, 200_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	some := bytes.Repeat([]byte("abcdefgh"), 25_000)
	for _, data := range [][]byte{some, bytes.Join([][]byte{noise, some, noise, some}, nil)} {
		for _, args := range [][]string{
			nil, {"-0"}, {"-9"}, {"-C", "none"}, {"-C", "crc32"}, {"-C", "sha256"}, {"--block-size=4096"}, {"-T2", "--block-size=100000"},
			{"--lzma2=dict=4KiB"}, {"--lzma2=lc=0,lp=4,pb=4"}, {"--lzma2=lc=4,lp=0"},
		} {
			packed := pack(t, data, args...)
			got, err := unpackedCopy(packed, len(data))
			require.NoError(t, err, args)
			require.True(t, bytes.Equal(data, got), args)
			_, err = unpackedCopy(packed, len(data)-1)
			require.ErrorContains(t, err, "unpacked bytes")
		}
	}
	empty, err := unpackedCopy(pack(t, nil), 10)
	require.NoError(t, err)
	require.Empty(t, empty)
	_, err = unpackedCopy(pack(t, some, "--x86", "--lzma2"), len(some))
	require.ErrorIs(t, err, elffile.ErrUnsupported)
	packed := pack(t, some[:1000])
	for n := range len(packed) - 40 {
		_, err := unpackedCopy(packed[:n], len(some))
		require.Error(t, err, n)
	}
}

// Each block has a decoder, also one that unpacks to nothing.
func TestUnpackBlocks(t *testing.T) {
	const block = 4096
	data := make([]byte, (maxBlocks+1)*block)
	_, err := unpackedCopy(pack(t, data[block:], "--block-size=4096"), len(data))
	require.NoError(t, err)
	_, err = unpackedCopy(pack(t, data, "--block-size=4096"), len(data))
	require.ErrorContains(t, err, "number of blocks")
}

// A few bytes that unpack to much, with a dictionary of any size, take as much memory of Go's heap as
// they are unpacked, at most, and none where that is more than is allowed.
func TestUnpackBomb(t *testing.T) {
	const most = 8 << 20
	packed := pack(t, make([]byte, most), "--lzma2=preset=0,dict=1GiB")
	require.Less(t, len(packed), 1<<16)
	allocated := func(most int) (uint64, error) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, free, err := unpack(packed, most, goOn)
		free()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, err
	}
	bytes, err := allocated(most)
	require.NoError(t, err)
	require.Less(t, bytes, uint64(most+most/4))
	bytes, err = allocated(most - 1)
	require.ErrorContains(t, err, "unpacked bytes")
	require.Less(t, bytes, uint64(1<<16))
}

// indexBytes has the index and what is behind it, which are not read.
const indexBytes = 20

// streamOf is an xz file of one block, without a check.
func streamOf(chunks []byte) []byte {
	b := append([]byte(xzMagic), 0, 0)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[6:]))
	header := []byte{2, 0, xzFilterLZMA2, 1, 20, 0, 0, 0}
	b = append(b, header...)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(header))
	b = append(b, chunks...)
	b = append(b, make([]byte, -len(b)&3)...)
	return append(b, make([]byte, indexBytes)...)
}

// chunksOf is a chunk with properties, others, and the end. Each unpacks to one byte, 0.
func chunksOf(properties byte, other []byte, others int) []byte {
	b := append([]byte{0xe0, 0, 0, 0, 5, properties}, make([]byte, 6)...)
	return append(append(b, bytes.Repeat(other, others)...), 0)
}

const usualProperties = (2*5+0)*9 + 3

// resets is a chunk that has the decoder begin anew, plain one that is not packed.
func resets() []byte { return []byte{0xa0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0} }
func plain() []byte  { return []byte{2, 0, 0, 0} }

// A chunk of a few bytes that has megabytes initialized is none, nor are there many of few bytes.
func TestUnpackSlow(t *testing.T) {
	for _, tt := range []struct {
		properties byte
		other      []byte
		others     int
		err        string
	}{
		{(0*5+4)*9 + 8, resets(), 3, "properties of a chunk"},
		{(4*5+1)*9 + 4, resets(), 3, "properties of a chunk"},
		{(4*5+1)*9 + 3, resets(), 3, ""},
		{usualProperties, resets(), extraChunks - 1, ""},
		{usualProperties, resets(), extraChunks + 2, "number of chunks"},
		{usualProperties, plain(), extraChunks - 1, ""},
		{usualProperties, plain(), extraChunks + 2, "number of chunks"},
	} {
		got, err := unpackedCopy(streamOf(chunksOf(tt.properties, tt.other, tt.others)), 1<<20)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, make([]byte, tt.others+1), got)
	}
}

// Chunks that say something else than what they are, or are cut.
func TestUnpackChunks(t *testing.T) {
	whole := chunksOf(usualProperties, plain(), 2)
	packed := streamOf(whole)
	for n := range len(packed) - indexBytes {
		_, err := unpackedCopy(packed[:n], 1<<20)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, n)
	}
	for _, chunk := range [][]byte{
		{3, 0, 0, 0}, {0x7f, 0, 0, 0}, // no chunk
		{1, 0xff, 0xff, 0},       // more than there is
		{0x80, 0, 1, 0, 5, 0, 0}, // nothing before it to go on from
	} {
		_, err := unpackedCopy(streamOf(append(bytes.Clone(chunk), 0)), 1<<20)
		require.Error(t, err, "%x", chunk)
	}
	more := bytes.Clone(whole)
	more[2] = 1 // two bytes
	_, err := unpackedCopy(streamOf(more), 1<<20)
	require.Error(t, err)
}

// What is left of a chunk, once it is unpacked, is not another one.
func TestUnpackHidden(t *testing.T) {
	hidden := chunksOf((0*5+4)*9+8, nil, 0)
	b := chunksOf(usualProperties, nil, 0)
	b = append(b[:len(b)-1], hidden...)
	b[4] += byte(len(hidden)) // bytes of the first chunk
	_, err := unpackedCopy(streamOf(append(b, 0)), 1<<20)
	require.ErrorContains(t, err, "end of a chunk")
}

// While much is read that unpacks to little, and the other way round, it is asked whether to go on.
func TestUnpackPaced(t *testing.T) {
	enough := errors.New("enough")
	const zeros = 4 << 20
	full := append([]byte{2, 0xff, 0xff}, make([]byte, 1<<16)...)
	long, short := streamOf(chunksOf(usualProperties, full, 10)), pack(t, make([]byte, zeros))
	for name, tt := range map[string]struct {
		packed []byte
		least  int
	}{
		"input": {long, len(long)/inputStep - 1}, "output": {short, zeros / outputStep},
	} {
		steps, most := 0, 0
		step := func() error {
			if steps++; steps == most {
				return enough
			}
			return nil
		}
		_, free, err := unpack(tt.packed, zeros, step)
		require.NoError(t, err)
		free()
		require.GreaterOrEqual(t, steps, tt.least, name)
		steps, most = 0, 3
		_, free, err = unpack(tt.packed, zeros, step)
		require.ErrorIs(t, err, enough, name)
		free()
		require.Equal(t, most, steps)
	}
}

// What is being unpacked when nobody wants it any more is not unpacked to its end.
func TestUnpackAbandoned(t *testing.T) {
	s := newSplit(t)
	s.withDebugData(t, pack(t, make([]byte, 4<<20)))
	closed, steps := &atomic.Bool{}, 0
	l := loader{src: &opener{path: s.root + s.path}, maxBytes: 1 << 20, packed: newRoom(packedLimits()), tables: newRoom(tableLimits()), closed: closed, pace: func() error {
		steps++
		closed.Store(true)
		return nil
	}}
	_, err := l.load()
	require.ErrorIs(t, err, errClosed)
	require.Equal(t, 1, steps)
}
