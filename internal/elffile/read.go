package elffile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// batchBytes is the most that one read of a table asks for: enough for system
// calls not to count, little enough to stay in the CPU's caches.
const batchBytes = 64 << 10

// read fills p from file offset off, which is work.
func (f *File) read(p []byte, off uint64) error {
	if n := uint64(len(p)); off > f.size || n > f.size-off {
		return &FormatError{off, "range outside of the file, bytes", n}
	}
	n, err := f.r.ReadAt(p, int64(off))
	if n == len(p) {
		return f.Work(n)
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
	return f.batches(off, entryBytes, count, func(first uint64, b []byte) bool {
		for i := first; len(b) > 0; i, b = i+1, b[entryBytes:] {
			if !fn(i, b[:entryBytes:entryBytes]) {
				return false
			}
		}
		return true
	})
}

// batches is each for several entries at a time; first is the number of the
// first of them.
func (f *File) batches(off, entryBytes, count uint64, fn func(first uint64, entries []byte) bool) error {
	if off > f.size || count > (f.size-off)/entryBytes {
		return &FormatError{off, "table outside of the file, entries", count}
	}
	perBatch := min(batchBytes/entryBytes, count)
	// Taking the buffer away while it is in use lets calls nest.
	buf := f.batch
	f.batch = nil
	if need := int(perBatch * entryBytes); cap(buf) < need {
		buf = make([]byte, need)
	}
	defer func() { f.batch = buf }()

	for first := uint64(0); first < count; first += perBatch {
		b := buf[:min(perBatch, count-first)*entryBytes]
		if err := f.read(b, off+first*entryBytes); err != nil {
			return err
		}
		if !fn(first, b) {
			return nil
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
