package golabels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// maxInfoBytes bounds what is decompressed of .debug_info: it streams by, and
	// a program of 500 MB has about that much.
	maxInfoBytes = 256 << 20
	// maxUnitBytes bounds the unit that is kept while it is searched; that with all
	// types of a program of 500 MB has about 20 MiB.
	maxUnitBytes   = 48 << 20
	maxAbbrevBytes = 4 << 20
	// maxUnits of the runtime are searched.
	maxUnits = 1024

	// peekBytes of a unit are looked at for its name.
	peekBytes = 512
)

// typesUnit is the name of the units in which Go's linker puts the types of all
// packages (cmd/link/internal/ld, "runtimeCU").
const typesUnit = "runtime"

var (
	errNoDebugInfo = errors.New("no debug information")
	errNoTypes     = errors.New("no types of the runtime in the debug information")
	errDamaged     = errors.New("damaged debug information")
)

// readTypes searches .debug_info for the types that matter. Everything but the
// units of the runtime is passed over.
func readTypes(f *elffile.File) (*types, error) {
	abbrevs, err := contents(f, ".debug_abbrev", maxAbbrevBytes)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(abbrevs)
	if err != nil {
		return nil, fmt.Errorf("read .debug_abbrev: %w", err)
	}
	info, err := contents(f, ".debug_info", maxInfoBytes)
	if err != nil {
		return nil, err
	}
	t := newTypes()
	if err := t.search(info, &abbrevTable{data: b, work: f.Work}); err != nil {
		return nil, fmt.Errorf("read .debug_info: %w", err)
	}
	return t, nil
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

// search reads units from .debug_info until all types are found.
func (t *types) search(info io.Reader, table *abbrevTable) error {
	var head [4]byte
	peek := make([]byte, peekBytes)
	for at, searched := uint64(0), 0; ; {
		switch _, err := io.ReadFull(info, head[:]); {
		case errors.Is(err, io.EOF):
			if t.g == nil || t.m == nil {
				return errNoTypes
			}
			return nil
		case err != nil:
			return err
		}
		length := binary.LittleEndian.Uint32(head[:])
		if length >= 0xfffffff0 {
			return fmt.Errorf("%w: 64-bit form", errDamaged)
		}
		first := peek[:min(length, peekBytes)]
		if _, err := io.ReadFull(info, first); err != nil {
			return err
		}
		u, err := newUnit(first, at, table)
		if err != nil {
			return err
		}
		rest := int64(length) - int64(len(first))
		if u == nil || u.name != typesUnit || length > maxUnitBytes || searched == maxUnits {
			if _, err := io.CopyN(io.Discard, info, rest); err != nil {
				return err
			}
		} else {
			searched++
			var whole bytes.Buffer
			whole.Write(first)
			if _, err := io.CopyN(&whole, info, rest); err != nil {
				return err
			}
			u.data = whole.Bytes()
			if err := t.visit(u); err != nil {
				return err
			}
			if t.complete() {
				return nil
			}
		}
		at += 4 + uint64(length)
	}
}

// unit is a unit of .debug_info behind its length.
type unit struct {
	at          uint64 // offset of the unit in the section
	version     uint16
	addrBytes   int
	headerBytes int
	abbrevs     map[uint64]abbrev
	name        string // "" if it is not in the unit itself
	data        []byte
}

const (
	unitCompile = 1 // DW_UT_compile

	lengthBytes = 4
)

// newUnit reads the header of a unit and its first entry; nil is another kind of
// unit.
func newUnit(first []byte, at uint64, table *abbrevTable) (*unit, error) {
	u := &unit{at: at, data: first}
	r := cursor{b: first}
	u.version = uint16(r.uint(2))
	var offset uint64
	switch u.version {
	case 2, 3, 4:
		offset = r.uint(4)
		u.addrBytes = int(r.uint(1))
	case 5:
		kind := r.uint(1)
		u.addrBytes = int(r.uint(1))
		offset = r.uint(4)
		if kind != unitCompile {
			return nil, nil
		}
	default:
		return nil, fmt.Errorf("%w: version %d", errDamaged, u.version)
	}
	if r.bad || u.addrBytes != wordBytes {
		return nil, fmt.Errorf("%w: header of a unit", errDamaged)
	}
	u.headerBytes = r.at
	var err error
	if u.abbrevs, err = table.read(offset); err != nil {
		return nil, err
	}
	// The entry may go on beyond what is there; its name comes first.
	var e entry
	u.entry(&r, &e)
	u.name = e.name
	return u, nil
}
