package symbol

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

const (
	xzMagic       = "\xfd7zXZ\x00"
	xzHeaderBytes = 12
	xzFilterLZMA2 = 0x21
)

// maxBlocks bounds the blocks of a stream: each has a decoder of its own. Those of xz have 24 MiB
// and more.
const maxBlocks = 256

// xzChecks are the lengths of checks by their type.
var xzChecks = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// xzBlock is a block of a stream.
type xzBlock struct {
	chunks     []byte
	unpacked   int // bytes, as the chunks say
	dictionary int64
}

// unpack unpacks the first stream of an xz file into at most most bytes, outside of Go's heap: free
// gives them back, also after an error. step says now and then whether to go on.
//
// The container is read here and not by package xz, which makes room for a dictionary of any size
// that a block asks for: up to 4 GiB. Here it is no larger than the output. (The .xz File Format,
// 1.2.1, sections 2.1 and 3.) What the headers of blocks and chunks say of lengths and of work is
// summed up before anything is unpacked. Checks of the contents are skipped: what the contents say
// is not believed anyway.
func unpack(packed []byte, most int, step func() error) (unpacked []byte, free func(), err error) {
	free = func() {}
	// The bytes are the target's. A mistake of the decoder costs one file's names.
	defer func() {
		if p := recover(); p != nil {
			unpacked, err = nil, fmt.Errorf("unpack: %v", p)
		}
	}()
	blocks, total, err := readBlocks(packed, most)
	if err != nil {
		return nil, free, err
	}
	if unpacked = offheap.Map(max(total, 1)); unpacked != nil {
		outside := unpacked
		free = func() { offheap.Unmap(outside) }
	} else {
		unpacked = make([]byte, total)
	}
	unpacked = unpacked[:total]
	left := unpacked
	for _, b := range blocks {
		if err := unpackChunks(left[:b.unpacked], b.chunks, b.dictionary, step); err != nil {
			return nil, free, err
		}
		left = left[b.unpacked:]
	}
	return unpacked, free, nil
}

// readBlocks returns the blocks of a stream, and how many bytes they are unpacked: at most most.
func readBlocks(packed []byte, most int) (blocks []xzBlock, unpacked int, err error) {
	if len(packed) < xzHeaderBytes {
		return nil, 0, io.ErrUnexpectedEOF
	}
	header := packed[:xzHeaderBytes]
	if string(header[:6]) != xzMagic || header[6] != 0 || header[7]&0xf0 != 0 ||
		crc32.ChecksumIEEE(header[6:8]) != binary.LittleEndian.Uint32(header[8:]) {
		return nil, 0, &elffile.FormatError{Msg: "stream header"}
	}
	chunks := extraChunks + len(packed)/chunkBytes
	for rest := packed[xzHeaderBytes:]; ; {
		dictionary, headerBytes, err := readBlockHeader(rest)
		if err != nil || headerBytes == 0 {
			return blocks, unpacked, err
		}
		if len(blocks) == maxBlocks {
			return nil, 0, &elffile.FormatError{Msg: "number of blocks", Val: len(blocks)}
		}
		rest = rest[headerBytes:]
		b, err := readBlock(rest, &chunks)
		if err != nil {
			return nil, 0, err
		}
		if unpacked += b.unpacked; unpacked > most {
			return nil, 0, &elffile.FormatError{Msg: "unpacked bytes", Val: unpacked}
		}
		b.dictionary = dictionary
		blocks = append(blocks, b)
		// Blocks are padded to 4 bytes. Their headers are multiples of it.
		end := len(b.chunks) + -len(b.chunks)&3 + xzChecks[header[7]]
		if end > len(rest) {
			return nil, 0, io.ErrUnexpectedEOF
		}
		rest = rest[end:]
	}
}

// readBlock returns the block whose chunks b begins with. chunks is how many more there may be.
func readBlock(b []byte, chunks *int) (block xzBlock, err error) {
	for at := 0; ; *chunks-- {
		c, err := readChunk(b[at:])
		if err != nil {
			return xzBlock{}, err
		}
		at += c.packed
		block.unpacked += c.unpacked
		if c.unpacked == 0 {
			block.chunks = b[:at]
			return block, nil
		}
		if *chunks == 0 {
			return xzBlock{}, &elffile.FormatError{Off: uint64(at), Msg: "number of chunks"}
		}
	}
}

// readBlockHeader reads a block's header, of so many bytes; 0 at the end of all blocks.
func readBlockHeader(b []byte) (dictionary int64, headerBytes int, err error) {
	if len(b) == 0 {
		return 0, 0, io.ErrUnexpectedEOF
	}
	if b[0] == 0 { // what follows the blocks begins with 0
		return 0, 0, nil
	}
	headerBytes = 4 * (int(b[0]) + 1)
	if len(b) < headerBytes {
		return 0, 0, io.ErrUnexpectedEOF
	}
	h, sum := b[:headerBytes-4], binary.LittleEndian.Uint32(b[headerBytes-4:])
	flags := h[1]
	if crc32.ChecksumIEEE(h) != sum || flags&0x3f != 0 {
		return 0, 0, fmt.Errorf("%w: block flags %#x", elffile.ErrUnsupported, flags)
	}
	rest := h[2:]
	for _, present := range []byte{0x40, 0x80} { // sizes, packed and unpacked
		if flags&present != 0 {
			_, used := binary.Uvarint(rest)
			if used <= 0 {
				return 0, 0, &elffile.FormatError{Msg: "size of a block"}
			}
			rest = rest[used:]
		}
	}
	if len(rest) < 3 || rest[0] != xzFilterLZMA2 || rest[1] != 1 || rest[2] > 40 {
		return 0, 0, fmt.Errorf("%w: block filter", elffile.ErrUnsupported)
	}
	if d := rest[2]; d < 40 {
		return int64(2|d&1) << (d/2 + 11), headerBytes, nil
	}
	return 1<<32 - 1, headerBytes, nil
}
