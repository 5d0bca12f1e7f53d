package symbol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/ulikunitz/xz/lzma"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	xzMagic       = "\xfd7zXZ\x00"
	xzHeaderBytes = 12
	xzFilterLZMA2 = 0x21
)

// maxBlocks bounds the blocks of a stream: each has a dictionary of its own, in which memory is
// cleared. Those of xz have 24 MiB and more.
const maxBlocks = 256

// xzChecks are the lengths of checks by their type.
var xzChecks = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// unpack unpacks the first stream of an xz file into at most most bytes. The
// container is read here and not by package xz, which makes room for a dictionary of
// any size that a block asks for: up to 4 GiB. Here it is no larger than the output.
// (The .xz File Format, 1.2.1, sections 2.1 and 3.) Checks of the contents are
// skipped: what the contents say is not believed anyway.
func unpack(r io.Reader, most int) (unpacked []byte, err error) {
	// The bytes are the target's. A mistake of the decoder costs one file's names.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unpack: %v", p)
		}
	}()
	br := bufio.NewReader(r)
	var header [xzHeaderBytes]byte
	if _, err = io.ReadFull(br, header[:]); err != nil {
		return nil, err
	}
	if string(header[:6]) != xzMagic || header[6] != 0 || header[7]&0xf0 != 0 ||
		crc32.ChecksumIEEE(header[6:8]) != binary.LittleEndian.Uint32(header[8:]) {
		return nil, &elffile.FormatError{Msg: "stream header"}
	}
	var out bytes.Buffer
	for blocks := 0; ; blocks++ {
		dictionary, more, err := xzBlock(br)
		if err != nil || !more {
			return out.Bytes(), err
		}
		if blocks == maxBlocks {
			return nil, &elffile.FormatError{Msg: "number of blocks", Val: blocks}
		}
		counted := &countingReader{r: br}
		config := lzma.Reader2Config{DictCap: max(int(min(dictionary, int64(most))), lzma.MinDictCap)}
		block, err := config.NewReader2(counted)
		if err != nil {
			return nil, err
		}
		b, err := readAtMost(block, most-out.Len())
		if err != nil {
			return nil, err
		}
		out.Write(b)
		// Blocks are padded to 4 bytes. Their headers are multiples of it.
		skip := int(-counted.n&3) + xzChecks[header[7]]
		if _, err := br.Discard(skip); err != nil {
			return nil, err
		}
	}
}

// xzBlock reads a block's header. more is false at the end of all blocks.
func xzBlock(br *bufio.Reader) (dictionary int64, more bool, err error) {
	n, err := br.ReadByte()
	if err != nil || n == 0 { // what follows the blocks begins with 0
		return 0, false, err
	}
	h := make([]byte, 4*(int(n)+1))
	h[0] = n
	if _, err := io.ReadFull(br, h[1:]); err != nil {
		return 0, false, err
	}
	sum := binary.LittleEndian.Uint32(h[len(h)-4:])
	h = h[:len(h)-4]
	flags := h[1]
	if crc32.ChecksumIEEE(h) != sum || flags&0x3f != 0 {
		return 0, false, fmt.Errorf("%w: block flags %#x", elffile.ErrUnsupported, flags)
	}
	rest := h[2:]
	for _, present := range []byte{0x40, 0x80} { // sizes, packed and unpacked
		if flags&present != 0 {
			_, used := binary.Uvarint(rest)
			if used <= 0 {
				return 0, false, &elffile.FormatError{Msg: "size of a block"}
			}
			rest = rest[used:]
		}
	}
	if len(rest) < 3 || rest[0] != xzFilterLZMA2 || rest[1] != 1 || rest[2] > 40 {
		return 0, false, fmt.Errorf("%w: block filter", elffile.ErrUnsupported)
	}
	if d := rest[2]; d < 40 {
		return int64(2|d&1) << (d/2 + 11), true, nil
	}
	return 1<<32 - 1, true, nil
}

// countingReader counts what is read through it.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// ReadByte lets readers take a byte at a time and not more than they need.
func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
