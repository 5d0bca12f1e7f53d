package golabels

import "fmt"

const (
	// maxAbbrevs and maxAttributes bound what a table of .debug_abbrev may say;
	// Go's has about 60 of at most 10.
	maxAbbrevs    = 4096
	maxAttributes = 64
)

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
	offset uint64
	last   map[uint64]abbrev
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
	t.offset, t.last = offset, table
	return table, nil
}
