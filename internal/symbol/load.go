package symbol

import (
	"cmp"
	"debug/elf"
	"errors"
	"io"
	"math"
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
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
	// debug is what a debug file would have to be that a container has for this file; nil if
	// none is wanted.
	debug *debugID
}

// less reports whether there are fewer functions than in others of the same file.
func (f *functions) less(than *functions) bool {
	return than.isGo && !f.isGo || f.table.Len() < than.table.Len()
}

// loader reads a file.
type loader struct {
	src      Source
	maxBytes int          // of symbols, before their names are compressed
	maxKept  int          // bytes of them, once they are; 0: any
	packed   *room        // of .gnu_debugdata
	tables   *room        // of symbols
	of       *functions   // of the file, if what is read is the debug file that the Owner has for it
	summed   int64        // bytes of debug files whose checksum was computed
	closed   *atomic.Bool // set when the functions are not wanted any more; may be nil
	pace     func() error // of the reading of one file, see elffile.File.Pace; may be nil
	turn     func() error // waits until the file may be read on; may be nil
	refused  error        // of turn: nothing more is read
}

// begin waits until the file may be read, or read on.
func (l *loader) begin() error {
	if l.refused == nil && l.turn != nil {
		l.refused = l.turn()
	}
	return l.refused
}

// step says whether reading may go on, and waits until it may.
func (l *loader) step() error { return cmp.Or(l.stepAlone(), l.begin()) }

// stepAlone is step of what others wait for.
func (l *loader) stepAlone() error {
	switch {
	case l.abandoned():
		return errClosed
	case l.pace != nil:
		return l.pace()
	}
	return nil
}

// abandoned reports whether what is read is not wanted any more.
func (l *loader) abandoned() bool { return l.closed != nil && l.closed.Load() }

// openError says that a file could not be opened, or not be read, through the process that was sampled.
type openError struct{ error }

func (e openError) Unwrap() error { return e.error }

var errClosed = errors.New("closed")

// load reads what is known of a file's functions. A damaged one may yield both
// functions and an error.
//
// A Go program's own table goes before all else. Symbols, for the code that it says
// nothing of, are taken from the first of these that there is, and from the dynamic
// symbol table in any case:
//
//  1. .symtab;
//  2. a separate debug file that the host has (debugID.onHost);
//  3. .gnu_debugdata.
//
// What is between 2 and 3, the debug file that a container has, is read apart (loadDebug): it
// holds for processes of that container only. So is one that the host has for where the file is in that container.
func (l *loader) load() (*functions, error) {
	if l.of != nil {
		return l.loadDebug()
	}
	contents, size, err := l.src.Open()
	if err != nil {
		return nil, openError{err}
	}
	defer contents.Close()
	in := &elffile.FaultReader{ReaderAt: contents}
	fs, err := l.read(in, size)
	if in.Fault != nil {
		return nil, openError{in.Fault}
	}
	return fs, err
}

// read reads what is known of a file.
func (l *loader) read(contents io.ReaderAt, size int64) (*functions, error) {
	f, err := elffile.New(contents, size)
	if err != nil {
		return nil, err
	}
	f.Pace(l.step)
	fs := &functions{table: &Table{}}
	// Where the table is damaged, there may still be symbols.
	if fs.golang, err = gopclntab.Find(f); err == nil {
		fs.isGo = true
	}
	if fs.isGo && coversCode(f, &fs.golang) {
		return fs, nil
	}
	return l.fill(fs, fs, func(add func(elffile.Function) bool) error { return l.symbols(fs, f, add) })
}

// loadDebug reads the debug file that the Owner's container has for a file, or the host, if the Owner has the file
// elsewhere than who had it read. If there is none, it returns functions of which there are none.
func (l *loader) loadDebug() (*functions, error) {
	fs := &functions{table: &Table{}}
	debug, contents, err := l.of.debug.forOwner(l)
	if errors.Is(err, procfs.ErrNoProcess) {
		return nil, openError{err}
	}
	if err != nil {
		return nil, err
	}
	if debug == nil {
		return fs, nil
	}
	defer contents.Close()
	debug.Pace(l.step)
	return l.fill(fs, l.of, debug.StaticFunctions)
}

// fill enters the functions that each calls its argument with, but for Go's of a file. It ends
// with an errNoRoom where there is no room for all of them.
func (l *loader) fill(fs, of *functions, each func(add func(elffile.Function) bool) error) (*functions, error) {
	all := newLowest(l.maxBytes)
	discard := all.begin(l.maxBytes)
	defer discard()
	room, full := l.tables.begin(l.src.Owner()), false
	defer room.end()
	err := each(func(fn elffile.Function) bool {
		if of.isGo && of.golang.Contains(fn.Value) {
			return true
		}
		full = full || !room.has(all.bytes()+entryBytes+len(fn.Name))
		return !full && all.add(&fn) && !l.abandoned()
	})
	fs.table.truncated = fs.table.truncated || full || all.truncated
	if full {
		err = errors.Join(err, errNoRoom)
	}
	fs.table.incomplete = fs.table.incomplete || err != nil
	if l.abandoned() {
		return nil, errClosed
	}
	var whole bool
	fs.table.compact, whole = compactUpTo(fs.table, &all.entries, cmp.Or(l.maxKept, math.MaxInt))
	fs.table.truncated = fs.table.truncated || !whole
	return fs, err
}

// symbols calls add with the symbols of a file until it returns false.
func (l *loader) symbols(fs *functions, f *elffile.File, add func(elffile.Function) bool) error {
	stripped, err := f.Stripped()
	if err == nil && stripped {
		err = l.debug(fs, f, add)
	} else if err == nil {
		err = f.StaticFunctions(add)
	}
	if dynErr := f.DynamicFunctions(add); err == nil {
		err = dynErr
	}
	return err
}

// debug calls add with the symbols that were taken out of a file.
func (l *loader) debug(fs *functions, f *elffile.File, add func(elffile.Function) bool) error {
	if id := newDebugID(f); id != nil {
		debug, contents, err := id.onHost(l)
		if err != nil {
			return err
		}
		if debug != nil {
			defer contents.Close()
			debug.Pace(l.step)
			return debug.StaticFunctions(add)
		}
		id.hostDir = id.dir(l.src.Path())
		fs.debug = id
	}
	room := l.packed.begin(l.src.Owner())
	defer room.end()
	packed, err := packedData(f, room)
	if err != nil || packed == nil {
		fs.table.incomplete = true // the dynamic symbols alone lack all functions that are not exported
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	room.alone(func() { err = l.debugData(packed, add) })
	return err
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
