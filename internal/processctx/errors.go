package processctx

import (
	"errors"
	"fmt"
)

var (
	// ErrNotContext says that there is no process context at an address: the
	// signature or the version is not the expected one.
	ErrNotContext = errors.New("no process context")

	// ErrUpdating says that the publisher is writing, now or each time that we
	// looked. Trying again later makes sense.
	ErrUpdating = errors.New("process context is being written")

	// ErrTooLarge says that the payload is larger than MaxPayloadBytes.
	ErrTooLarge = errors.New("process context too large")
)

// FormatError describes a payload that does not have the expected form.
type FormatError struct {
	Off int // byte offset in the payload
	Msg string
	Err error // of the protobuf decoder, or nil
}

func (e *FormatError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s at offset %d", e.Msg, e.Off)
	}
	return fmt.Sprintf("%s at offset %d: %v", e.Msg, e.Off, e.Err)
}

// Unwrap returns the error of the protobuf decoder.
func (e *FormatError) Unwrap() error { return e.Err }
