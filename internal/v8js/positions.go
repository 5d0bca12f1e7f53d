package v8js

// position is a SourcePosition: bit 0 tells that it is none of a script; 30 bits of the place
// in the script, plus 1; 16 bits of the number of the inlining that it is in, plus 1.
type position uint64

func (p position) external() bool { return p&1 != 0 }
func (p position) offset() int32  { return int32(p>>1&(1<<30-1)) - 1 }
func (p position) in() int32      { return int32(p>>31&(1<<16-1)) - 1 }

// positionTable takes a source position table from its beginning: differences of offset and
// position, each zigzag in groups of 7 bits, the lowest first. A negative number d stands for
// the offset -d-1, a place that no statement begins at. From 14.1 on its bit 0 is a flag. The
// first one is counted from -1, which stands for the begin of a function.
type positionTable struct {
	b        []byte
	flagged  bool   // bit 0 of offsets is a flag
	behind   uint32 // the offset, plus 1
	position uint64
}

// offset is that of the entry; 0 for the begin of a function.
func (t *positionTable) offset() uint32 { return max(t.behind, 1) - 1 }

// next goes to the next entry, false if there is none.
func (t *positionTable) next() bool {
	if len(t.b) == 0 {
		return false
	}
	d := signed(&t.b)
	if len(t.b) == 0 {
		return false // the second number is missing
	}
	if d < 0 {
		d = -(d + 1)
	}
	if t.flagged {
		d >>= 1
	}
	t.behind += uint32(d)
	b := t.b
	t.position += uint64(signed(&t.b))
	return b[len(b)-len(t.b)-1]&0x80 == 0 // else its end is missing
}

// unsigned takes a number: 7 bits a byte, the lowest first, while bit 7 is set. It takes no more
// bytes than 64 bits need, whatever they are: so the numbers that are taken bound the work.
func unsigned(b *[]byte) (v uint64) {
	for shift := 0; len(*b) > 0 && shift < 64; shift += 7 {
		c := (*b)[0]
		*b = (*b)[1:]
		v |= uint64(c&0x7f) << shift
		if c&0x80 == 0 {
			break
		}
	}
	return v
}

func signed(b *[]byte) int64 {
	v := unsigned(b)
	return int64(v>>1) ^ -int64(v&1)
}
