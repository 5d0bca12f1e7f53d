package cpython

import (
	"math"
	"slices"
	"sort"
)

// Codes of entries in a location table, behind the short forms.
const (
	locationOneLine   = 10 // to 12: on the line so many further
	locationNoColumns = 13
	locationLong      = 14
	locationNone      = 15
)

// lines are those of a function's instructions, in their order.
type lines []lineEnd

// lineEnd says that instructions up to one, which is counted in code units, have a line.
type lineEnd struct {
	next uint32 // the first behind them
	line int32  // 0: none
}

// at returns the line of an instruction, 0 if it has none.
func (l lines) at(instruction uint32) int {
	i := sort.Search(len(l), func(i int) bool { return l[i].next > instruction })
	if i == len(l) {
		return 0
	}
	return int(l[i].line)
}

// wholeEntries leaves out the last entry of a location table that is cut: it may lack its end.
func wholeEntries(table []byte) []byte {
	for n := len(table) - 1; n > 0; n-- {
		if table[n]&0x80 != 0 {
			return table[:n]
		}
	}
	return nil
}

// decodeLines decodes a location table. An entry is a byte whose upper bit is set, and what
// follows that has none:
//
//	bits 3 to 6 code, 0 to 2 the number of code units less one
func decodeLines(table []byte, firstLine int) (all lines) {
	r := tableReader{table}
	line, next := firstLine, uint32(0)
	for len(r.b) > 0 {
		head := r.byte()
		if head&0x80 == 0 {
			break
		}
		next += uint32(head&7) + 1
		code := head >> 3 & 15
		switch {
		case code == locationNone:
		case code == locationLong, code == locationNoColumns:
			line += r.signed()
		case code >= locationOneLine:
			line += int(code - locationOneLine)
		}
		here := lineEnd{next: next}
		if code != locationNone && line > 0 && line <= math.MaxInt32 {
			here.line = int32(line)
		}
		if n := len(all); n > 0 && all[n-1].line == here.line {
			all[n-1].next = next
		} else {
			all = append(all, here)
		}
		r.skip()
	}
	return slices.Clip(all)
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
