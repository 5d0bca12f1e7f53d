package gopclntab

import (
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// maxSteps bounds the steps through one pc-value table. Generated functions of a
// megabyte of code have some hundred thousand.
const maxSteps = 1 << 20

// cursor decodes a pc-value table: pairs of a zigzag-encoded difference of the value
// and a difference of the address, both varints; a difference of the value of 0, but
// for the first one, ends it. (runtime.step)
type cursor struct {
	r        *Reader
	off, end uint64 // in the file
	buf      []byte // from off on, up to end at most
	pc       uint64 // end of the range that value holds for
	value    int32
	steps    int
	err      error
}

// values begins with the table at an offset. Offset 0 stands for none.
func (r *Reader) values(off uint32, f *Func) cursor {
	c := cursor{
		r: r, off: r.t.off + r.t.values + uint64(off), end: r.t.off + r.t.code,
		pc: f.Entry, value: -1,
	}
	if off == 0 {
		c.end = c.off
	}
	return c
}

// next goes on to the next range: [pc as it was, pc).
func (c *cursor) next() bool {
	if c.off == c.end && c.steps == 0 {
		return false
	}
	delta := c.varint()
	if c.err != nil || delta == 0 && c.steps > 0 {
		return false
	}
	if c.steps++; c.steps > maxSteps {
		c.err = &elffile.FormatError{Off: c.off, Msg: "length of pc-value table", Val: c.steps}
		return false
	}
	if c.err = c.r.steps.take(); c.err != nil {
		return false
	}
	c.value += int32(-(delta & 1) ^ delta>>1)
	c.pc += uint64(c.varint()) * c.r.t.quantum
	return c.err == nil
}

func (c *cursor) varint() uint32 {
	if len(c.buf) >= 2 { // nearly all are that short
		v, n := uint32(c.buf[0]), uint64(1)
		if v >= 0x80 {
			v, n = v&0x7f|uint32(c.buf[1])<<7, 2
		}
		if c.buf[n-1] < 0x80 {
			c.buf, c.off = c.buf[n:], c.off+n
			return v
		}
	}
	return c.long()
}

// long decodes a varint of any length.
func (c *cursor) long() uint32 {
	var v uint32
	for shift := 0; shift < 35 && c.err == nil; shift += 7 {
		b := c.byte()
		v |= uint32(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
	if c.err == nil {
		c.err = &elffile.FormatError{Off: c.off, Msg: "varint too long"}
	}
	return 0
}

func (c *cursor) byte() byte {
	if len(c.buf) == 0 && !c.fill() {
		return 0
	}
	b := c.buf[0]
	c.buf, c.off = c.buf[1:], c.off+1
	return b
}

// fill reads on behind buf.
func (c *cursor) fill() bool {
	if c.off >= c.end {
		c.err = &elffile.FormatError{Off: c.off, Msg: "pc-value table without an end"}
		return false
	}
	c.buf, c.err = c.r.pages.at(c.off)
	c.buf = c.buf[:min(uint64(len(c.buf)), c.end-c.off)]
	return c.err == nil
}

// value returns the value of a table at an address of a function, -1 if the table
// says nothing of it.
func (r *Reader) value(off uint32, f *Func, pc uint64) (int32, error) {
	c := r.values(off, f)
	for c.next() {
		if pc < c.pc {
			return c.value, nil
		}
	}
	if c.err != nil {
		return 0, fmt.Errorf("read pc-value table: %w", c.err)
	}
	return -1, nil
}

// StackDeltas calls yield with the ranges of a function in the order of their
// addresses: from start on, up to the next one or the function's end, the stack
// pointer is delta bytes below where it was at entry. x86-64: the return address is
// at SP + delta. aarch64: where delta is not 0, it is at SP; else it is in x30. The error may
// be ErrSteps.
func (r *Reader) StackDeltas(f *Func, yield func(start uint64, delta int32) bool) error {
	r.steps.address = 0
	c := r.values(f.stack, f)
	for start := f.Entry; c.next() && start < f.End; start = c.pc {
		if !yield(start, c.value) {
			return nil
		}
	}
	if c.err != nil {
		return fmt.Errorf("read stack deltas: %w", c.err)
	}
	return nil
}
