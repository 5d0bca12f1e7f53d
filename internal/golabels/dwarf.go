package golabels

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

const (
	// maxInfoBytes bounds what is decompressed of .debug_info: it streams by, and
	// a program of 500 MB has about that much.
	maxInfoBytes   = 256 << 20
	maxAbbrevBytes = 4 << 20
)

// typesUnit is the name of the units in which Go's linker puts the types of all
// packages (cmd/link/internal/ld, "runtimeCU").
const typesUnit = "runtime"

var (
	errNoDebugInfo = errors.New("no debug information")
	errNoTypes     = errors.New("no types of the runtime in the debug information")
	errDamaged     = errors.New("damaged debug information")
	// errTooMuch says that the debug information is not read to its end.
	errTooMuch = errors.New("too much debug information")
	errInfo    = fmt.Errorf("%w: more than %d bytes", errTooMuch, maxInfoBytes)
)

// readTypes searches .debug_info for the types that matter. Everything but the
// units of the runtime is passed over.
func readTypes(f *elffile.File) (*types, error) {
	abbrevs, err := contents(f, ".debug_abbrev", maxAbbrevBytes)
	if err != nil {
		return nil, err
	}
	data, free := offheap.Reserve[byte](maxAbbrevBytes)
	defer free()
	if data, err = readAll(abbrevs, slices.Grow(data, maxAbbrevBytes)); err != nil {
		return nil, fmt.Errorf("read .debug_abbrev: %w", err)
	}
	all, err := contents(f, ".debug_info", maxInfoBytes)
	if err != nil {
		return nil, err
	}
	t, info := newTypes(), io.LimitedReader{R: all, N: maxInfoBytes}
	err = t.search(&info, &abbrevTable{data: data, work: f.Work})
	switch {
	case err == nil:
		return t, nil
	case info.N == 0: // whatever was found in the end
		err = errInfo
	}
	return nil, fmt.Errorf("read .debug_info: %w", err)
}

func contents(f *elffile.File, section string, maxBytes int64) (io.Reader, error) {
	s, ok, err := f.Section(section)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoDebugInfo
	}
	return f.Contents(s, maxBytes)
}

// readAll appends what a reader has, as far as there is room.
func readAll(r io.Reader, b []byte) ([]byte, error) {
	for len(b) < cap(b) {
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

// search reads units from .debug_info until all types are found.
func (t *types) search(info io.Reader, table *abbrevTable) error {
	l := newLinks()
	defer l.free()
	r := newStream(info)
	u := &unit{table: table}
	for {
		ok, err := u.next(r)
		switch {
		case errors.Is(err, errEnd):
			if t.g == nil || t.m == nil {
				return errNoTypes
			}
			return nil
		case err != nil:
			return err
		}
		if ok && u.name.is(typesUnit) {
			if err := t.visit(u, r, l); err != nil {
				return err
			}
			if t.complete() {
				return nil
			}
		}
		if r.skip(r.rest()); r.bad {
			return r.damage("end of a unit", r.offset())
		}
	}
}

// unit is a unit of .debug_info.
type unit struct {
	at        uint64 // offset in the section
	version   uint16
	addrBytes int
	table     *abbrevTable
	name      text
}

const (
	unitCompile = 1 // DW_UT_compile

	lengthBytes = 4
)

// errEnd says that there are no more units.
var errEnd = errors.New("no more units")

// next reads the header of the next unit, and its first entry. ok is false for another kind
// of unit.
func (u *unit) next(r *cursor) (ok bool, err error) {
	u.at, u.name = r.offset(), text{}
	r.left = lengthBytes
	length := r.uint(lengthBytes)
	switch {
	case errors.Is(r.err, io.EOF):
		return false, errEnd
	case r.bad:
		return false, r.damage("length of a unit", u.at)
	case length >= 0xfffffff0:
		return false, r.damage("64-bit form", u.at)
	}
	r.left = length
	tables, ok := u.header(r)
	switch {
	case r.bad:
		return false, r.damage("header of a unit", u.at)
	case !ok:
		return false, nil
	case u.addrBytes != wordBytes:
		return false, r.damage("size of addresses of a unit", u.at)
	}
	if err := u.table.read(tables); err != nil {
		return false, err
	}
	var e entry
	u.entry(r, &e)
	u.name = e.name // comes first
	if r.bad && (r.err != nil || u.name.is(typesUnit)) {
		return false, r.damage("first entry of a unit", u.at)
	}
	r.bad = false // another unit may say what it will: the rest of it is passed over
	return true, nil
}

// header reads what follows the length, and returns the offset of the unit's abbreviations.
// ok is false for another kind of unit.
func (u *unit) header(r *cursor) (tables uint64, ok bool) {
	u.version = uint16(r.uint(2))
	switch u.version {
	case 2, 3, 4:
		tables = r.uint(4)
		u.addrBytes = int(r.uint(1))
		return tables, true
	case 5:
		kind := r.uint(1)
		u.addrBytes = int(r.uint(1))
		return r.uint(4), kind == unitCompile
	}
	r.bad = true
	return 0, false
}
