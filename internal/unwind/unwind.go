package unwind

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// New compiles the call frame information of a file: .eh_frame and Go's pclntab,
// and .debug_frame for functions that .eh_frame leaves out. To it are added linkage tables, and
// what text without any is known by: signal trampolines, the ends of the system
// calls that make threads, and what package codeframes makes of code. The error is ErrNone, an ErrLimit, that of
// Limits.Hold, or one of packages elffile and gopclntab, maybe wrapped.
func New(e *elffile.File, limits Limits) (*Table, error) {
	b, err := newBuilder(e, limits.withDefaults())
	if err != nil {
		return nil, err
	}
	defer b.free()
	t, err := b.build()
	if b.refused == nil {
		return t, err
	}
	if t != nil {
		t.Close()
	}
	return nil, b.refused
}

func (b *builder) build() (*Table, error) {
	err := b.readEHFrame()
	golang, goErr := b.readGo()
	if errors.Is(goErr, ErrLimit) {
		return nil, goErr
	}
	err = errors.Join(err, goErr)
	if !errors.Is(err, ErrLimit) && !golang {
		if debugErr := b.readDebugFrame(); debugErr != nil {
			err = errors.Join(err, debugErr)
		}
	}
	if errors.Is(err, ErrLimit) {
		return nil, err
	}
	b.sort()
	if linkageErr := b.readLinkage(); linkageErr != nil {
		return nil, linkageErr
	}
	if searchErr := b.searchTrampolines(); err == nil {
		err = searchErr
	}
	if codeErr := b.followCode(); err == nil {
		err = codeErr
	}
	// What could be read before an error is as good as without it.
	if len(b.spans) == 0 {
		if err != nil {
			return nil, err
		}
		return nil, ErrNone
	}
	return b.table()
}

// readEHFrame reads .eh_frame, if there is one.
func (b *builder) readEHFrame() error {
	s, terminated, ok, err := ehFrame(b.file)
	if err == nil && ok {
		err = b.read(s, terminated, true)
	}
	if err != nil {
		return fmt.Errorf("read .eh_frame: %w", err)
	}
	return nil
}
