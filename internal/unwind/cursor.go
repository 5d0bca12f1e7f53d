package unwind

import "encoding/binary"

// cursor reads the fields of an entry. Past the end it yields zeros and is bad
// from then on.
type cursor struct {
	b   []byte
	off int
	bad bool
}

func (c *cursor) left() int { return len(c.b) - c.off }

// bytes returns the next n bytes.
func (c *cursor) bytes(n uint64) []byte {
	if n > uint64(c.left()) {
		c.bad, c.off = true, len(c.b)
		return nil
	}
	b := c.b[c.off : c.off+int(n)]
	c.off += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if c.off >= len(c.b) {
		c.bad = true
		return 0
	}
	c.off++
	return c.b[c.off-1]
}

func (c *cursor) u16() uint16 {
	if b := c.bytes(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uleb reads an unsigned LEB128 number; one of more than 64 bits is bad.
func (c *cursor) uleb() uint64 {
	if c.off < len(c.b) && c.b[c.off] < 0x80 {
		c.off++
		return uint64(c.b[c.off-1])
	}
	v, n := binary.Uvarint(c.b[c.off:])
	if n <= 0 {
		c.bad, c.off = true, len(c.b)
		return 0
	}
	c.off += n
	return v
}

// sleb reads a signed LEB128 number; one of more than 64 bits is bad.
func (c *cursor) sleb() int64 {
	v := uint64(0)
	for shift := uint(0); ; shift += 7 {
		b := c.u8()
		if c.bad || shift > 63 || shift == 63 && b != 0 && b != 0x7f {
			c.bad = true
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if shift < 57 && b&0x40 != 0 {
				v |= ^uint64(0) << (shift + 7)
			}
			return int64(v)
		}
	}
}

// name reads a string that ends in NUL.
func (c *cursor) name() []byte {
	for i := c.off; i < len(c.b); i++ {
		if c.b[i] == 0 {
			s := c.b[c.off:i]
			c.off = i + 1
			return s
		}
	}
	c.bad, c.off = true, len(c.b)
	return nil
}
