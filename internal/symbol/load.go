package symbol

import (
	"debug/elf"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
)

const (
	// maxForeignBytes of code, besides the headers of a file, may lie around Go's in a
	// program of which only Go's functions are wanted: what Go's linker itself adds.
	maxForeignBytes = 256
	headersBytes    = 4 << 10
)

// functions is what is known of a file.
type functions struct {
	table  *Table          // symbols
	golang gopclntab.Table // if isGo
	isGo   bool
}

// loader reads a file.
type loader struct {
	src      Source
	maxBytes int          // of symbols
	unpacks  *sync.Mutex  // held while unpacking
	closed   *atomic.Bool // set when the functions are not wanted any more; may be nil
}

// abandoned reports whether what is read is not wanted any more.
func (l *loader) abandoned() bool { return l.closed != nil && l.closed.Load() }

// openError says that a file could not be opened, through the process that was sampled.
type openError struct{ error }

var errClosed = errors.New("closed")

// load reads what is known of a file's functions. A damaged one may yield both
// functions and an error.
//
// A Go program's own table goes before all else. Symbols, for the code that it says
// nothing of, are taken from the first of these that there is, and from the dynamic
// symbol table in any case:
//
//  1. .symtab;
//  2. a separate debug file (findDebug);
//  3. .gnu_debugdata.
func (l *loader) load() (*functions, error) {
	contents, size, err := l.src.Open()
	if err != nil {
		return nil, openError{err}
	}
	defer contents.Close()
	f, err := elffile.New(contents, size)
	if err != nil {
		return nil, err
	}
	fs := &functions{table: &Table{memo: map[int]Function{}}}
	// Where the table is damaged, there may still be symbols.
	if fs.golang, err = gopclntab.Find(f); err == nil {
		fs.isGo = true
	}
	if fs.isGo && coversCode(f, &fs.golang) {
		return fs, nil
	}
	discard := fs.table.begin(l.maxBytes)
	defer discard()
	add := func(fn elffile.Function) bool {
		if fs.isGo && fs.golang.Contains(fn.Value) {
			return true
		}
		fs.table.truncated = fs.table.truncated || !fs.table.add(fn.Value, fn.Size, fn.Name, l.maxBytes)
		return !fs.table.truncated && !l.abandoned()
	}
	err = l.symbols(f, add)
	if l.abandoned() {
		return nil, errClosed
	}
	finish(fs.table, &fs.table.entries)
	return fs, err
}

// symbols calls add with the symbols of a file until it returns false.
func (l *loader) symbols(f *elffile.File, add func(elffile.Function) bool) error {
	stripped, err := f.Stripped()
	if err == nil && stripped {
		err = l.debug(f, add)
	} else if err == nil {
		err = f.StaticFunctions(add)
	}
	if dynErr := f.DynamicFunctions(add); err == nil {
		err = dynErr
	}
	return err
}

// debug calls add with the symbols that were taken out of a file.
func (l *loader) debug(f *elffile.File, add func(elffile.Function) bool) error {
	debug, contents, err := findDebug(l.src, f)
	if err != nil {
		return err
	}
	if debug != nil {
		defer contents.Close()
		return debug.StaticFunctions(add)
	}
	l.unpacks.Lock()
	defer l.unpacks.Unlock()
	debug, err = debugData(f)
	if err != nil || debug == nil {
		return err
	}
	return debug.StaticFunctions(add)
}

// coversCode reports whether all code of a file is Go's.
func coversCode(f *elffile.File, t *gopclntab.Table) bool {
	code := uint64(0)
	for s := range f.Loads() {
		if s.Flags&elf.PF_X == 0 {
			continue
		}
		code += s.Memsz
		if s.Offset == 0 {
			code -= min(s.Memsz, headersBytes)
		}
	}
	return code-(t.Limit-t.Start) <= maxForeignBytes
}
