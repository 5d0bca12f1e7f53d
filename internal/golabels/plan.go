package golabels

import (
	"errors"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Errors of NewPlan. They hold for the file, whatever process runs it. Others say
// that the file is damaged.
var (
	// ErrNotGo says that the file is no Go program.
	ErrNotGo = errors.New("not a Go program")

	// ErrVersion says that the layout of this release's runtime is not known: the
	// file has no debug information, and its version is not in the table.
	ErrVersion = errors.New("unknown layout of Go's runtime")

	// ErrSlot says that it is not known where threads keep their goroutine: the
	// program has thread-local variables of C code, and no symbols.
	ErrSlot = errors.New("unknown place of Go's thread-local goroutine")
)

// Layout has the offsets, in bytes, in Go's runtime.g and runtime.m. It is
// comparable.
type Layout struct {
	record.GoLayout
	// Map tells that labels are a pointer to a map[string]string, as before Go
	// 1.24, and not to a slice of key and value.
	Map bool
}

// Plan is how to read the labels of a program's goroutines. It is comparable and
// without references to the file.
type Plan struct {
	Version   string // as the program states it, such as "go1.26.1"
	Layout    Layout
	FromDWARF bool // Layout is from the program's debug information, else from the table
	// Limited tells that the debug information was not read to where it says the offsets, as that takes too
	// much, or could not be.
	Limited bool
	Slot    Slot
}

// NewPlan reads an executable.
func NewPlan(f *elffile.File) (Plan, error) {
	version, err := readVersion(f)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Version: version}
	if p.Slot, err = findSlot(f); err != nil {
		return p, err
	}
	p.Layout, p.FromDWARF, p.Limited, err = findLayout(f, version)
	return p, err
}
