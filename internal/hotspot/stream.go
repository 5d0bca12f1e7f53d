package hotspot

import (
	"slices"
	"sort"
)

// stream takes numbers from a compressed stream. Behind its end all is 0, and bad is set.
type stream struct {
	b []byte
	// excess is added to each byte, so that none is 0: 1 from version 20 on.
	excess byte
	bad    bool
}

// excess of the streams of a version.
func (p *process) excess() byte {
	if p.version == version17 {
		return 0
	}
	return 1
}

func (s *stream) byte() byte {
	if len(s.b) == 0 {
		s.bad = true
		return 0
	}
	c := s.b[0]
	s.b = s.b[1:]
	return c
}

// Codes of numbers: bytes from highCode on have a successor, of 5 at most; each has 6 bits more
// of weight.
const (
	highCode     = 192
	maxCodeBytes = 5
)

func (s *stream) uint() uint32 {
	sum := uint32(0)
	for i := range maxCodeBytes {
		c := s.byte()
		if c < s.excess {
			s.bad = true
		}
		sum += uint32(c-s.excess) << (6 * i)
		if c < highCode {
			break
		}
	}
	return sum
}

// int takes a number whose lowest bit is the sign.
func (s *stream) int() int {
	v := s.uint()
	return int(int32(v>>1 ^ -(v & 1)))
}

// lineEntry says which line the code from a bytecode on belongs to.
type lineEntry struct{ bytecode, line int32 }

// escape begins an entry of a line table whose differences do not fit into a byte.
const escape = 0xff

// decodeLines reads a compressed line number table. Its entries are in order then. Of one that has more than is
// read, or makes no sense from some entry on, the last entry has no line: what is behind it is not known.
func decodeLines(s stream) (lines []lineEntry) {
	bytecode, line := 0, 0
	for len(lines) < maxLines {
		c := s.byte()
		switch {
		case c == 0 && !s.bad:
			return inOrder(lines)
		case c == escape:
			bytecode += s.int()
			line += s.int()
		default:
			bytecode += int(c >> 3)
			line += int(c & 7)
		}
		if s.bad || bytecode < 0 || bytecode > 1<<16 || line < 0 || line > 1<<16 {
			break
		}
		lines = append(lines, lineEntry{int32(bytecode), int32(line)})
	}
	if len(lines) > 0 {
		lines[len(lines)-1].line = 0
	}
	return inOrder(lines)
}

// inOrder sorts entries; of those with one bytecode, the first counts.
func inOrder(lines []lineEntry) []lineEntry {
	slices.SortStableFunc(lines, func(a, b lineEntry) int { return int(a.bytecode - b.bytecode) })
	return slices.CompactFunc(lines, func(a, b lineEntry) bool { return a.bytecode == b.bytecode })
}

// lineOf returns the line of a bytecode, 0 if it is not known.
func lineOf(lines []lineEntry, bytecode int) int {
	i := sort.Search(len(lines), func(i int) bool { return int(lines[i].bytecode) > bytecode })
	if i == 0 {
		return 0
	}
	return int(lines[i-1].line)
}
