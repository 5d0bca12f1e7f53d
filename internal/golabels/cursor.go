package golabels

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// windowBytes of a section that streams by are held.
	windowBytes = 16 << 10
	// nameBytes of a name are kept: more than those that are looked for have.
	nameBytes = 32
)

// cursor reads bytes that may end anywhere. Once they do, it is bad, and all that
// it returns is 0.
type cursor struct {
	b    []byte // what is there
	at   int    // in b
	from uint64 // offset of b in what is read
	more io.Reader
	left uint64 // bytes of more that may be read
	err  error  // of more
	bad  bool
}

// newStream reads from a reader, as soon as left says how much.
func newStream(r io.Reader) *cursor {
	return &cursor{b: make([]byte, 0, windowBytes), more: r}
}

// offset is where the cursor is in all that was read.
func (c *cursor) offset() uint64 { return c.from + uint64(c.at) }

// rest is how many bytes there should be from the cursor on.
func (c *cursor) rest() uint64 { return uint64(len(c.b)-c.at) + c.left }

// fill has n bytes at the cursor, at most windowBytes, or is bad.
func (c *cursor) fill(n int) bool {
	have := len(c.b) - c.at
	if c.bad || n <= have {
		return !c.bad
	}
	if uint64(n-have) > c.left {
		c.bad = true
		return false
	}
	copy(c.b[:have], c.b[c.at:])
	c.from, c.at = c.from+uint64(c.at), 0
	room := min(c.left, uint64(cap(c.b)-have))
	got, err := io.ReadAtLeast(c.more, c.b[have:have+int(room)], n-have)
	c.b, c.left = c.b[:have+got], c.left-uint64(got)
	if err != nil {
		c.err, c.bad = err, true
	}
	return !c.bad
}

// take reads n bytes, at most windowBytes, that are valid until more is read.
func (c *cursor) take(n int) []byte {
	if !c.fill(n) {
		return nil
	}
	b := c.b[c.at : c.at+n]
	c.at += n
	return b
}

// skip passes over any number of bytes.
func (c *cursor) skip(n uint64) {
	if n > c.rest() {
		c.bad = true
	}
	for !c.bad {
		have := uint64(len(c.b) - c.at)
		if n <= have {
			c.at += int(n)
			return
		}
		n -= have
		c.at = len(c.b)
		c.fill(1)
	}
}

// uint reads a little-endian number of up to 8 bytes.
func (c *cursor) uint(n int) (v uint64) {
	for i, b := range c.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// byte reads one.
func (c *cursor) byte() byte {
	if c.bad || c.at == len(c.b) && !c.fill(1) {
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

// uleb reads an unsigned LEB128 of at most 64 bits.
func (c *cursor) uleb() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := c.byte()
		if c.bad || shift > 63 {
			c.bad = true
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

// sleb reads a signed one.
func (c *cursor) sleb() (v int64) {
	for shift := 0; ; {
		b := c.byte()
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

// text is as much of a name as is kept.
type text struct {
	b [nameBytes]byte
	n int
}

func (t *text) bytes() []byte { return t.b[:t.n] }

// is tells a name that is shorter than nameBytes.
func (t *text) is(name string) bool { return string(t.bytes()) == name }

// text reads up to a NUL byte.
func (c *cursor) text(t *text) {
	for t.n = 0; c.fill(1); c.at = len(c.b) {
		part := c.b[c.at:]
		end := bytes.IndexByte(part, 0)
		if end >= 0 {
			part = part[:end]
		}
		t.n += copy(t.b[t.n:], part)
		if end >= 0 {
			c.at += end + 1
			return
		}
	}
	t.n = 0
}

// damage is why a cursor is bad, or what is wrong with what it has read: it may end too early.
func (c *cursor) damage(what string, at uint64) error {
	if c.err != nil && !errors.Is(c.err, io.EOF) && !errors.Is(c.err, io.ErrUnexpectedEOF) {
		return c.err
	}
	return fmt.Errorf("%w: %s at %#x", errDamaged, what, at)
}
