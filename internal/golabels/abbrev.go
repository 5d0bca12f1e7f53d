package golabels

import "fmt"

const (
	// maxAbbrevs, maxAttributes of each and maxTableAttributes of all of them bound what a
	// table of .debug_abbrev may say; Go's has about 60 of at most 10.
	maxAbbrevs         = 4096
	maxAttributes      = 64
	maxTableAttributes = 32 << 10

	// maxTableBytes bounds what is read of the tables of all units of a file: units may take
	// turns with tables. Go's linker writes one table for all of them.
	maxTableBytes = 64 << 20
	// tableBytes is what the reading of a table counts for, besides its bytes.
	tableBytes = 64
)

// errTables says that the units of a file have more tables than are read.
var errTables = fmt.Errorf("%w: more than %d bytes of abbreviations", errTooMuch, maxTableBytes)

// abbrev says what an entry of .debug_info with its code has.
type abbrev struct {
	tag      uint64
	children bool
	from, to int // its attributes among those of the table
}

type attribute struct {
	name, form uint64
	constant   int64 // DW_FORM_implicit_const
}

// abbrevTable reads tables of .debug_abbrev. It has the last one, in whose memory the next is
// read: units of one compiler share theirs.
type abbrevTable struct {
	data  []byte
	work  func(bytes int) error // is told of the bytes that are read; its error ends that
	bytes int                   // that were read

	there      bool
	offset     uint64
	abbrevs    map[uint64]abbrev
	attributes []attribute
}

// spend counts a table of so many bytes.
func (t *abbrevTable) spend(bytes int) error {
	n := tableBytes + bytes
	if t.bytes += n; t.bytes > maxTableBytes {
		return errTables
	}
	return t.work(n)
}

// read has the table at an offset.
func (t *abbrevTable) read(offset uint64) error {
	if t.there && t.offset == offset {
		return nil
	}
	if offset > uint64(len(t.data)) {
		return fmt.Errorf("%w: offset of abbreviations", errDamaged)
	}
	if t.abbrevs == nil {
		t.abbrevs = map[uint64]abbrev{}
	}
	clear(t.abbrevs)
	t.attributes = t.attributes[:0]
	r := cursor{b: t.data[offset:]}
	for {
		code := r.uleb()
		if code == 0 || r.bad {
			break
		}
		a := abbrev{tag: r.uleb(), children: r.uint(1) != 0, from: len(t.attributes)}
		if err := t.readAttributes(&r); err != nil {
			return err
		}
		a.to = len(t.attributes)
		if t.abbrevs[code] = a; len(t.abbrevs) > maxAbbrevs {
			return fmt.Errorf("%w: number of abbreviations", errDamaged)
		}
	}
	if r.bad {
		return fmt.Errorf("%w: abbreviations", errDamaged)
	}
	t.there, t.offset = true, offset
	return t.spend(r.at)
}

// readAttributes reads those of one abbreviation.
func (t *abbrevTable) readAttributes(r *cursor) error {
	from := len(t.attributes)
	for {
		at := attribute{name: r.uleb(), form: r.uleb()}
		if at.form == formImplicitConst {
			at.constant = r.sleb()
		}
		if r.bad || at.name == 0 && at.form == 0 {
			return nil
		}
		t.attributes = append(t.attributes, at)
		if n := len(t.attributes); n-from > maxAttributes || n > maxTableAttributes {
			return fmt.Errorf("%w: number of attributes of abbreviations", errDamaged)
		}
	}
}
