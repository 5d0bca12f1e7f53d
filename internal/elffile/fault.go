package elffile

import (
	"errors"
	"io"
)

// FaultReader notes that a file could not be read, as its disk or file server failed, or it is
// another file by now. That it ends early is no fault.
type FaultReader struct {
	io.ReaderAt
	Fault error // the last one; nil: none
}

// ReadAt implements io.ReaderAt.
func (r *FaultReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		r.Fault = err
	}
	return n, err
}
