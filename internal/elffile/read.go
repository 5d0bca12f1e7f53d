package elffile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// batchBytes is the most that one read of a table asks for.
const batchBytes = 16 << 10

// read fills p from file offset off.
func (f *File) read(p []byte, off uint64) error {
	if n := uint64(len(p)); off > f.size || n > f.size-off {
		return &FormatError{off, "range outside of the file, bytes", n}
	}
	n, err := f.r.ReadAt(p, int64(off))
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the file has shrunk
	}
	return fmt.Errorf("read %d bytes at %#x: %w", len(p), off, err)
}

// small reads n <= len(f.scratch) bytes, valid until the next small read.
func (f *File) small(n int, off uint64) ([]byte, error) {
	b := f.scratch[:n]
	return b, f.read(b, off)
}

// each calls fn with the entries of a table in turn until it returns false.
// The bytes are valid during the call only. Entries are read in batches.
func (f *File) each(off, entryBytes, count uint64, fn func(i uint64, entry []byte) bool) error {
	if off > f.size || count > (f.size-off)/entryBytes {
		return &FormatError{off, "table outside of the file, entries", count}
	}
	// Taking the buffer away while it is in use lets calls nest.
	buf := f.batch
	f.batch = nil
	if buf == nil {
		buf = make([]byte, batchBytes)
	}
	defer func() { f.batch = buf }()

	perBatch := batchBytes / entryBytes
	for first := uint64(0); first < count; first += perBatch {
		n := min(perBatch, count-first)
		b := buf[:n*entryBytes]
		if err := f.read(b, off+first*entryBytes); err != nil {
			return err
		}
		for i := range n {
			if !fn(first+i, b[i*entryBytes:(i+1)*entryBytes]) {
				return nil
			}
		}
	}
	return nil
}

func beforeNUL(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return b[:i]
	}
	return b
}
