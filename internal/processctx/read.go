package processctx

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// MaxPayloadBytes of a context are read. Those of real publishers have a few
	// hundred bytes; a key map of 256 long names has a few thousand.
	MaxPayloadBytes = 64 << 10

	// readAttempts bounds how often a context that changes meanwhile is read
	// again at once.
	readAttempts = 3
)

// The header at the start of the mapping (OTEP 4719, "Header"), in the byte
// order of the machine, which is little endian on all that we read:
//
//	0 signature, 8 version u32, 12 payload bytes u32, 16 published at u64, 24 payload pointer
const (
	signature   = "OTEL_CTX"
	version     = 2
	headerBytes = 32
	publishedAt = 16 // offset of the timestamp
)

// Memory reads the memory of a process.
type Memory interface {
	// ReadAt fills p from address addr, or returns an error.
	ReadAt(p []byte, addr uint64) error
}

// header is what a publisher keeps at the start of its mapping.
type header struct {
	published uint64 // CLOCK_BOOTTIME ns, 0 while it is being written
	payload   uint64 // address
	bytes     uint32
}

// Read reads and decodes the context whose mapping starts at addr. The error is
// ErrNotContext, ErrUpdating, ErrTooLarge, a *FormatError, or that of reading
// the memory, wrapped.
func Read(mem Memory, addr uint64) (*Context, error) {
	for range readAttempts {
		h, err := readHeader(mem, addr)
		if err != nil {
			return nil, err
		}
		payload := make([]byte, h.bytes)
		readErr := mem.ReadAt(payload, h.payload)
		// All of it: what was copied while another was written may have the new time and not the rest.
		again, err := readHeader(mem, addr)
		if errors.Is(err, ErrUpdating) || err == nil && again != h {
			continue
		}
		if err != nil {
			return nil, err
		}
		if readErr != nil {
			return nil, fmt.Errorf("read payload: %w", readErr)
		}
		c, err := decode(payload)
		if err != nil {
			return nil, err
		}
		c.PublishedAtNs = h.published
		return c, nil
	}
	return nil, ErrUpdating
}

// PublishedAt reads the timestamp of the context whose mapping starts at addr. As
// long as it does not change, neither does the context. 0 means that it is being
// written.
func PublishedAt(mem Memory, addr uint64) (uint64, error) {
	var b [8]byte
	if err := mem.ReadAt(b[:], addr+publishedAt); err != nil {
		return 0, fmt.Errorf("read timestamp: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

func readHeader(mem Memory, addr uint64) (header, error) {
	var b [headerBytes]byte
	if err := mem.ReadAt(b[:], addr); err != nil {
		return header{}, fmt.Errorf("read header: %w", err)
	}
	if string(b[:8]) != signature {
		return header{}, fmt.Errorf("%w: signature %q", ErrNotContext, b[:8])
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return header{}, fmt.Errorf("%w: version %d, not %d", ErrNotContext, v, version)
	}
	h := header{
		bytes:     binary.LittleEndian.Uint32(b[12:]),
		published: binary.LittleEndian.Uint64(b[publishedAt:]),
		payload:   binary.LittleEndian.Uint64(b[24:]),
	}
	switch {
	case h.published == 0:
		return header{}, ErrUpdating
	case h.bytes > MaxPayloadBytes:
		return header{}, fmt.Errorf("%w: %d bytes, at most %d are read", ErrTooLarge, h.bytes, MaxPayloadBytes)
	}
	return h, nil
}
