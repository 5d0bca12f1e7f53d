//go:build linux

package executable

import (
	"errors"
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// threadDB is what a file says of itself to debuggers, read when it is first
// asked for.
type threadDB struct {
	mu    sync.Mutex // not held while the file is opened, which may wait for a process
	known bool
	db    tlsresolve.ThreadDB
	err   error
}

// ThreadDB returns what a C library that a process maps says of itself to debuggers. ErrNotOpened is one of its
// errors.
func (f *File) ThreadDB(by Asker) (tlsresolve.ThreadDB, error) {
	t := &f.threadDB
	if db, known, err := t.get(); known {
		return db, err
	}
	file, size, err := f.OpenBy(by)
	if err != nil {
		return tlsresolve.ThreadDB{}, err
	}
	defer file.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		return t.db, t.err
	}
	e, err := elffile.New(file, size)
	if err != nil {
		return tlsresolve.ThreadDB{}, err
	}
	t.db, t.err = tlsresolve.ReadThreadDB(e)
	// What the file says stays so; that it could not be read may pass.
	var format *elffile.FormatError
	t.known = t.err == nil || errors.Is(t.err, tlsresolve.ErrNoThreadDB) ||
		errors.Is(t.err, tlsresolve.ErrLayout) || errors.As(t.err, &format)
	return t.db, t.err
}

func (t *threadDB) get() (db tlsresolve.ThreadDB, known bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.db, t.known, t.err
}

// ThreadDBKnown reports whether ThreadDB has been answered. It is for tests.
func (f *File) ThreadDBKnown() bool {
	_, known, _ := f.threadDB.get()
	return known
}
