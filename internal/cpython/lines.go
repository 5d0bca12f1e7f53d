package cpython

// Codes of entries in a location table, behind the short forms.
const (
	locationOneLine   = 10 // to 12: on the line so many further
	locationNoColumns = 13
	locationLong      = 14
	locationNone      = 15
)

// lineAt returns the line of an instruction, counted in code units, by a location table. An
// entry is a byte whose upper bit is set, and what follows that has none:
//
//	bits 3 to 6 code, 0 to 2 the number of code units less one
func lineAt(table []byte, firstLine int, instruction uint64) (line int, ok bool) {
	r := tableReader{table}
	line = firstLine
	for next := uint64(0); len(r.b) > 0; {
		head := r.byte()
		if head&0x80 == 0 {
			return 0, false
		}
		next += uint64(head&7) + 1
		code := head >> 3 & 15
		switch {
		case code == locationNone:
		case code == locationLong, code == locationNoColumns:
			line += r.signed()
		case code >= locationOneLine:
			line += int(code - locationOneLine)
		}
		if instruction < next {
			return line, code != locationNone && line > 0
		}
		r.skip()
	}
	return 0, false
}

// tableReader takes a table from its beginning.
type tableReader struct{ b []byte }

func (r *tableReader) byte() byte {
	if len(r.b) == 0 {
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// skip goes to the next entry.
func (r *tableReader) skip() {
	for len(r.b) > 0 && r.b[0]&0x80 == 0 {
		r.b = r.b[1:]
	}
}

// signed takes a number: 6 bits a byte, the lowest first, while bit 6 is set; the lowest bit is
// the sign.
func (r *tableReader) signed() int {
	v, shift := uint32(0), 0
	for {
		c := r.byte()
		if shift < 32 {
			v |= uint32(c&0x3f) << shift
		}
		shift += 6
		if c&0x40 == 0 {
			break
		}
	}
	if v&1 != 0 {
		return -int(v >> 1)
	}
	return int(v >> 1)
}
