package gopclntab

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// MaxFileSteps bounds the steps through pc-value tables that one Reader takes, and names that it reads. The largest
	// programs have some million for all their functions' frame sizes.
	MaxFileSteps = 32 << 20
	// maxAddressSteps bounds those for one address: several tables, each for the function and
	// for each inlined call.
	maxAddressSteps = 4 << 20
	// stepNameBytes of a name are one more step.
	stepNameBytes = 16
)

// ErrSteps says that a Reader has taken MaxFileSteps. It reads no more.
var ErrSteps = errors.New("too many steps through the Go function table")

// steps are those that a Reader has taken.
type steps struct {
	taken   int
	address int // of them for the address, or the function, that is read now
}

// err says whether these are too many.
func (s *steps) err() error {
	switch {
	case s.taken > MaxFileSteps:
		return ErrSteps
	case s.address > maxAddressSteps:
		return &elffile.FormatError{Msg: "steps through pc-value tables for one address", Val: s.address}
	}
	return nil
}

// take counts a step through a pc-value table.
func (s *steps) take() error {
	s.taken++
	s.address++
	return s.err()
}

// takeName counts the reading of a name, of which there are few for one address.
func (s *steps) takeName(bytes int) error {
	if s.taken += 1 + bytes/stepNameBytes; s.taken > MaxFileSteps {
		return ErrSteps
	}
	return nil
}
