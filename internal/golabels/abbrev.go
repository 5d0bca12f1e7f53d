package golabels

import "fmt"

const (
	// maxAbbrevs and maxAttributes bound what a table of .debug_abbrev may say;
	// Go's has about 60 of at most 10.
	maxAbbrevs    = 4096
	maxAttributes = 64

	// maxTableBytes bounds what is read of the tables of all units of a file: units may take
	// turns with tables. Go's linker writes one table for all of them.
	maxTableBytes = 64 << 20
	// tableBytes is what the reading of a table counts for, besides its bytes.
	tableBytes = 64
)

// errTables says that the units of a file have more tables than are read.
var errTables = fmt.Errorf("more than %d bytes of abbreviations", maxTableBytes)

// abbrev says what an entry of .debug_info with its code has.
type abbrev struct {
	tag        uint64
	children   bool
	attributes []attribute
}

type attribute struct {
	name, form uint64
	constant   int64 // DW_FORM_implicit_const
}

// abbrevTable reads tables of .debug_abbrev. It keeps the last one: units of one
// compiler share theirs.
type abbrevTable struct {
	data   []byte
	work   func(bytes int) error // is told of the bytes that are read; its error ends that
	bytes  int                   // that were read
	offset uint64
	last   map[uint64]abbrev
}

// spend counts a table of so many bytes.
func (t *abbrevTable) spend(bytes int) error {
	n := tableBytes + bytes
	if t.bytes += n; t.bytes > maxTableBytes {
		return errTables
	}
	return t.work(n)
}

func (t *abbrevTable) read(offset uint64) (map[uint64]abbrev, error) {
	if t.last != nil && t.offset == offset {
		return t.last, nil
	}
	if offset > uint64(len(t.data)) {
		return nil, fmt.Errorf("%w: offset of abbreviations", errDamaged)
	}
	r := cursor{b: t.data[offset:]}
	table := map[uint64]abbrev{}
	for {
		code := r.uleb()
		if code == 0 || r.bad {
			break
		}
		a := abbrev{tag: r.uleb(), children: r.uint(1) != 0}
		for {
			at := attribute{name: r.uleb(), form: r.uleb()}
			if at.form == formImplicitConst {
				at.constant = r.sleb()
			}
			if r.bad || at.name == 0 && at.form == 0 {
				break
			}
			if a.attributes = append(a.attributes, at); len(a.attributes) > maxAttributes {
				return nil, fmt.Errorf("%w: attributes of one abbreviation", errDamaged)
			}
		}
		if table[code] = a; len(table) > maxAbbrevs {
			return nil, fmt.Errorf("%w: number of abbreviations", errDamaged)
		}
	}
	if r.bad {
		return nil, fmt.Errorf("%w: abbreviations", errDamaged)
	}
	if err := t.spend(r.at); err != nil {
		return nil, err
	}
	t.offset, t.last = offset, table
	return table, nil
}
