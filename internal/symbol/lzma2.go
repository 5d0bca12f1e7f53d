package symbol

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// maxLiteralBits is what lc and lp of a chunk are together, at most (liblzma: LZMA_LCLP_MAX).
	// Package lzma takes up to 12: then a decoder's state has 3 million probabilities, which a
	// chunk of 11 bytes has made anew.
	maxLiteralBits = 4
	// There may be one chunk in so many packed bytes, and extraChunks. Each takes some 10 µs: a state is
	// made anew, or a buffer of 32 KiB. Those of encoders have 64 KiB packed or 2 MiB unpacked, but
	// for the last of a block.
	chunkBytes  = 4 << 10
	extraChunks = 2 * maxBlocks
	// inputStep packed bytes or outputStep unpacked ones are between two looks at whether to go on.
	inputStep  = 4 << 10
	outputStep = 256 << 10
)

// chunk is what the header of a chunk says.
type chunk struct {
	packed   int // bytes, with the header
	unpacked int // bytes; 0: the end of all chunks
}

// readChunk reads the header of the chunk that b begins with (liblzma, lzma2_decoder.c):
//
//	0                                                  end
//	1 or 2, unpacked-1 (2 bytes)                       not packed
//	0x80|reset<<5|unpacked-1 (21 bits), packed-1 (2)   packed by LZMA; reset 1: of the state,
//	                                                   2 and 3 with a byte of properties
func readChunk(b []byte) (c chunk, err error) {
	if len(b) > 0 && b[0] == 0 {
		return chunk{packed: 1}, nil
	}
	head := chunkHead(b)
	if len(b) < head {
		return chunk{}, io.ErrUnexpectedEOF
	}
	size := int(binary.BigEndian.Uint16(b[1:])) + 1
	switch control := b[0]; {
	case control <= 2:
		c = chunk{head + size, size}
	case control < 0x80:
		return chunk{}, &elffile.FormatError{Msg: "chunk", Val: control}
	case head == 6 && literalBits(b[5]) > maxLiteralBits:
		return chunk{}, &elffile.FormatError{Msg: "properties of a chunk", Val: b[5]}
	default:
		c = chunk{head + int(binary.BigEndian.Uint16(b[3:])) + 1, size + int(control&0x1f)<<16}
	}
	if c.packed > len(b) {
		return chunk{}, io.ErrUnexpectedEOF
	}
	return c, nil
}

// chunkHead returns the length of the header that b begins with.
func chunkHead(b []byte) int {
	switch {
	case len(b) == 0 || b[0] < 0x80:
		return 3
	case b[0] < 0xc0:
		return 5
	}
	return 6
}

// literalBits returns lc+lp of a byte of properties, (pb*5+lp)*9 + lc.
func literalBits(properties byte) int { return int(properties%9 + properties/9%5) }

// unpackChunks unpacks all chunks of b into to, which is as long as they say. step says now and then
// whether to go on.
func unpackChunks(to, b []byte, dictionary int64, step func() error) error {
	if len(to) == 0 {
		return nil
	}
	// A dictionary that is larger than all that is unpacked is of no use.
	config := lzma.Reader2Config{DictCap: max(int(min(dictionary, int64(len(to)))), lzma.MinDictCap)}
	in := &pacedReader{step: step}
	var r *lzma.Reader2 // which reads a header at once
	for len(to) > 0 {
		c, err := readChunk(b)
		if err != nil {
			return err
		}
		in.b, b = b[:c.packed], b[c.packed:]
		if r == nil {
			if r, err = config.NewReader2(in); err != nil {
				return err
			}
		}
		for end := to[c.unpacked:]; len(to) > len(end); {
			n, err := io.ReadFull(r, to[:min(len(to)-len(end), outputStep)])
			if err != nil {
				return fmt.Errorf("unpack chunk: %w", err)
			}
			if err := step(); err != nil {
				return err
			}
			to = to[n:]
		}
		// Package lzma would take what is left for another chunk, which was not looked at.
		if len(in.b) > 0 {
			return &elffile.FormatError{Msg: "end of a chunk", Val: len(in.b)}
		}
	}
	return nil
}

// pacedReader reads a chunk, and asks now and then whether to go on.
type pacedReader struct {
	b    []byte // what is left of it
	step func() error
	read int // since it asked
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if p.read >= inputStep {
		p.read = 0
		if err := p.step(); err != nil {
			return 0, err
		}
	}
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), inputStep)], p.b)
	p.b = p.b[n:]
	p.read += n
	return n, nil
}
