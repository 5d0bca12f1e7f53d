// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/weight"
)

// cutError says that a file ends within a request.
type cutError struct {
	what         string // request, line
	n            int    // from 1
	there, bytes int64  // of it; bytes 0: not known
}

// Error implements error.
func (e *cutError) Error() string {
	there := fmt.Sprintf("%d bytes", e.there)
	if e.bytes > 0 {
		there = fmt.Sprintf("%d of %d bytes", e.there, e.bytes)
	}
	return fmt.Sprintf("the file ends within %s %d, which is left out (%s are there): it is cut, or still being written", e.what, e.n, there)
}

// ended says that a request could not be read to its end.
func ended(what string, n int, there, size int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &cutError{what, n, there, size}
	}
	return fmt.Errorf("%s %d: %w", what, n, err)
}

// isCutJSON reports whether a line that could not be decoded is the beginning of one.
func isCutJSON(line []byte, err error) bool {
	var tooLarge *weight.TooLargeError
	if errors.As(err, &tooLarge) {
		return false // more of it would be no better
	}
	return errors.Is(json.NewDecoder(bytes.NewReader(line)).Decode(&struct{}{}), io.ErrUnexpectedEOF)
}
