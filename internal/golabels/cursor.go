package golabels

import "bytes"

// cursor reads bytes that may end anywhere. Once they do, it is bad, and all that
// it returns is 0.
type cursor struct {
	b   []byte
	at  int
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)-c.at) {
		c.bad = true
		return nil
	}
	b := c.b[c.at : c.at+int(n)]
	c.at += int(n)
	return b
}

// uint reads a little-endian number of up to 8 bytes.
func (c *cursor) uint(n int) (v uint64) {
	for i, b := range c.take(uint64(n)) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// uleb reads an unsigned LEB128 of at most 64 bits.
func (c *cursor) uleb() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := c.uint(1)
		if c.bad || shift > 63 {
			c.bad = true
			return 0
		}
		v |= b & 0x7f << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

// sleb reads a signed one.
func (c *cursor) sleb() (v int64) {
	for shift := 0; ; {
		b := c.uint(1)
		if c.bad || shift > 63 {
			c.bad = true
			return 0
		}
		v |= int64(b&0x7f) << shift
		shift += 7
		if b&0x80 != 0 {
			continue
		}
		if b&0x40 != 0 && shift < 64 {
			v |= -1 << shift
		}
		return v
	}
}

// text reads up to a NUL byte.
func (c *cursor) text() string {
	if c.bad {
		return ""
	}
	i := bytes.IndexByte(c.b[c.at:], 0)
	if i < 0 {
		c.bad = true
		return ""
	}
	s := c.take(uint64(i))
	c.at++
	return string(s)
}
