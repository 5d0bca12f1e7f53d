package elffile

import (
	"errors"
	"fmt"
)

var (
	// ErrNotELF says that the file does not start with the ELF magic number.
	ErrNotELF = errors.New("not an ELF file")

	// ErrUnsupported says that the file is ELF of a class, byte order, type
	// or machine that this package does not read.
	ErrUnsupported = errors.New("unsupported ELF file")
)

// FormatError reports bytes that contradict the ELF format or exceed a bound
// of this package.
type FormatError struct {
	Off uint64 // file offset, or virtual address where Msg says so
	Msg string
	Val any // the offending value, or nil
}

// Error describes what is wrong, the value and where it is.
func (e *FormatError) Error() string {
	if e.Val == nil {
		return fmt.Sprintf("%s at %#x", e.Msg, e.Off)
	}
	return fmt.Sprintf("%s at %#x: %v", e.Msg, e.Off, e.Val)
}
