package unwind

import (
	"errors"
	"fmt"
)

var (
	// ErrNone says that a file has no call frame information that covers code.
	ErrNone = errors.New("no call frame information")

	// ErrLimit says that a file exceeds one of the Limits; see LimitError.
	ErrLimit = errors.New("limit exceeded")
)

// LimitError tells which of the Limits a file exceeds. It is an ErrLimit.
type LimitError struct {
	What  string
	Limit uint64
}

// Error names the limit.
func (e *LimitError) Error() string { return fmt.Sprintf("more %s than %d", e.What, e.Limit) }

// Is reports whether the target is ErrLimit.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
