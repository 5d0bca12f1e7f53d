package procfs

// fields takes a line apart from left to right; the first error sticks.
type fields struct {
	line []byte
	off  int
	err  error
}

func (f *fields) fail(msg string) {
	if f.err == nil {
		f.err = &FormatError{Off: uint64(f.off), Msg: msg, Val: string(f.line[f.off:min(len(f.line), f.off+32)])}
	}
}

// number parses an unsigned number that ends at the byte end, which is
// consumed, or at the end of the line if end is a space.
func (f *fields) number(base uint64, end byte) uint64 {
	var v uint64
	start := f.off
	for f.err == nil && f.off < len(f.line) && f.line[f.off] != end {
		d := digit(f.line[f.off])
		if d >= base || v > (1<<64-1-d)/base {
			f.fail("bad number")
			return 0
		}
		v = v*base + d
		f.off++
	}
	if f.err != nil {
		return 0
	}
	if f.off == start || f.off == len(f.line) && end != ' ' {
		f.fail("missing number")
		return 0
	}
	f.off = min(f.off+1, len(f.line))
	return v
}

// word returns the next n bytes, which a space must follow.
func (f *fields) word(n int) []byte {
	if f.err != nil {
		return nil
	}
	if len(f.line)-f.off <= n || f.line[f.off+n] != ' ' {
		f.fail("bad word")
		return nil
	}
	w := f.line[f.off : f.off+n]
	f.off += n + 1
	return w
}

// digit returns the value of a hexadecimal digit, or 255.
func digit(c byte) uint64 {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0')
	case 'a' <= c && c <= 'f':
		return uint64(c-'a') + 10
	}
	return 255
}

// cutWord returns the first word of a text, empty if there is none, and what is behind it.
func cutWord(text []byte) (word, rest []byte) {
	begin := 0
	for begin < len(text) && isSpace(text[begin]) {
		begin++
	}
	end := begin
	for end < len(text) && !isSpace(text[end]) {
		end++
	}
	return text[begin:end], text[end:]
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
