package codeframes

import "encoding/binary"

// Forms of instructions of x86-64 (Intel SDM volume 2, appendix A): what follows the opcode.
//
//	. nothing   m ModRM   b, w, z  8, 16, 16 or 32 bits   v  as wide as the register
//	B, Z  ModRM, and b or z   o an address   e 24 bits   j, J a distance of 8 or 32 bits
//	g, G  ModRM, and b or z where it is a test   p a prefix   x not an instruction
const oneByteForms = "" +
	"mmmmbzxxmmmmbzxx" + "mmmmbzxxmmmmbzxx" + "mmmmbzpxmmmmbzpx" + "mmmmbzpxmmmmbzpx" +
	"pppppppppppppppp" + "................" + "xxxmppppzZbB...." + "jjjjjjjjjjjjjjjj" +
	"BZxBmmmmmmmmmmmm" + "..........x....." + "oooo....bz......" + "bbbbbbbbvvvvvvvv" +
	"BBw.xxBZe.w..bx." + "mmmmxxx.mmmmmmmm" + "jjjjbbbbJJxj...." + "p.pp..gG......mm"

// Those behind 0x0f. Behind 0x0f 0x38 all are m, behind 0x0f 0x3a B.
const twoByteForms = "" +
	"mmmmx.....x.xm.B" + "mmmmmmmmmmmmmmmm" + "mmmmxxxxmmmmmmmm" + "......x.xxxxxxxx" +
	"mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm" + "BBBBmmm.mmxxmmmm" +
	"JJJJJJJJJJJJJJJJ" + "mmmmmmmmmmmmmmmm" + "...mBmxx...mBmmm" + "mmmmmmmmmmBmmmmm" +
	"mmBmBBBm........" + "mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm" + "mmmmmmmmmmmmmmmm"

// Numbers of registers.
const (
	x86SP = 4
	x86FP = 5
	x86AP = 10 // what gcc keeps the CFA in where it realigns the stack
	noReg = -1
)

// maxX86Bytes is the length of the longest instruction.
const maxX86Bytes = 15

// x86 is an instruction that was taken apart.
type x86 struct {
	size int

	opSize bool // prefix 0x66
	rep    byte // prefix 0xf2 or 0xf3
	rex    byte
	vex    bool // or EVEX
	vvvv   int

	opMap byte // 0, 1: 0x0f, 2: 0x0f38, 3: 0x0f3a
	op    byte
	imm   int64

	reg      int // of ModRM, or its extension of the opcode
	rm       int // noReg: memory
	base     int // noReg: none, or there is an index
	relative bool
	disp     int32
}

func (x *x86) wide() bool { return x.rex&8 != 0 }

// parseX86 takes an instruction apart. ok is false if it is none, or is cut short.
func parseX86(code []byte) (x x86, ok bool) {
	code = code[:min(len(code), maxX86Bytes)]
	x.base, x.rm = noReg, noReg
	at := 0
	for ; at < len(code); at++ {
		b := code[at]
		switch {
		case b == 0x66:
			x.opSize, x.rex = true, 0
		case b == 0xf2 || b == 0xf3:
			x.rep, x.rex = b, 0
		case b&0xf0 == 0x40:
			x.rex = b
		case oneByteForms[b] == 'p':
			x.rex = 0
		default:
			return x.afterPrefixes(code, at)
		}
	}
	return x, false
}

func (x *x86) afterPrefixes(code []byte, at int) (x86, bool) {
	form := byte('x')
	b := code[at]
	at++
	rest := len(code) - at
	switch {
	case b == 0xc5 && rest >= 2:
		x.vex, x.opMap = true, 1
		x.rex = 0x40 | ^code[at]>>5&4
		x.vector(code[at])
		at++
	case b == 0xc4 && rest >= 3:
		x.vex, x.opMap = true, code[at]&31
		x.rex = 0x40 | ^code[at]>>5&7 | code[at+1]>>4&8
		x.vector(code[at+1])
		at += 2
	case b == 0x62 && rest >= 4:
		x.vex, x.opMap = true, code[at]&7
		x.rex = 0x40 | ^code[at]>>5&7 | code[at+1]>>4&8
		x.vector(code[at+1])
		at += 3
	case b == 0x8f && rest >= 3 && code[at]&31 >= 8: // XOP
		x.vex, x.opMap = true, code[at]&31
		at += 2
	case b == 0x0f && rest >= 1:
		x.opMap = 1
		if b = code[at]; b == 0x38 || b == 0x3a {
			x.opMap = 2 + b>>1&1
			at++
			if rest < 2 {
				return *x, false
			}
		}
	default:
		at--
	}
	if at >= len(code) {
		return *x, false
	}
	x.op = code[at]
	at++
	switch x.opMap {
	case 0:
		form = oneByteForms[x.op]
	case 1:
		form = twoByteForms[x.op]
	case 2, 5, 6, 9:
		form = 'm'
	case 3, 8:
		form = 'B'
	case 10:
		form = 'Z'
	}
	if form == 'p' || form == 'x' || x.vex && form != 'm' && form != 'B' && form != 'Z' && x.op != 0x77 {
		return *x, false
	}
	return x.operands(code, at, form)
}

// vector takes up the last common byte of VEX and EVEX, which implies a prefix.
func (x *x86) vector(b byte) {
	x.vvvv = int(^b >> 3 & 15)
	switch b & 3 {
	case 1:
		x.opSize = true
	case 2:
		x.rep = 0xf3
	case 3:
		x.rep = 0xf2
	}
}

func (x *x86) operands(code []byte, at int, form byte) (x86, bool) {
	var ok bool
	switch form {
	case 'm', 'B', 'Z', 'g', 'G':
		if at, ok = x.parseModRM(code, at); !ok {
			return *x, false
		}
	}
	n, z := 0, 4
	if x.opSize && !x.wide() {
		z = 2
	}
	switch form {
	case 'b', 'B', 'j':
		n = 1
	case 'w':
		n = 2
	case 'e':
		n = 3
	case 'J':
		n = 4
	case 'z', 'Z':
		n = z
	case 'v':
		n = z
		if x.wide() {
			n = 8
		}
	case 'o':
		n = 8
	case 'g', 'G':
		if x.reg&7 < 2 && form == 'g' {
			n = 1
		} else if x.reg&7 < 2 {
			n = z
		}
	}
	if len(code)-at < n {
		return *x, false
	}
	switch n {
	case 1:
		x.imm = int64(int8(code[at]))
	case 2:
		x.imm = int64(int16(binary.LittleEndian.Uint16(code[at:])))
	case 4:
		x.imm = int64(int32(binary.LittleEndian.Uint32(code[at:])))
	case 8:
		x.imm = int64(binary.LittleEndian.Uint64(code[at:]))
	}
	x.size = at + n
	return *x, true
}

// parseModRM takes up ModRM, SIB and displacement.
func (x *x86) parseModRM(code []byte, at int) (next int, ok bool) {
	if at >= len(code) {
		return 0, false
	}
	b := code[at]
	at++
	mod, rm := b>>6, int(b&7)
	x.reg = int(b>>3&7) | int(x.rex&4)<<1
	if mod == 3 {
		x.rm = rm | int(x.rex&1)<<3
		return at, true
	}
	bytes := [3]int{0, 1, 4}[mod]
	x.base = rm | int(x.rex&1)<<3
	switch {
	case rm == 4:
		if at >= len(code) {
			return 0, false
		}
		sib := code[at]
		at++
		x.base = int(sib&7) | int(x.rex&1)<<3
		if mod == 0 && sib&7 == 5 {
			bytes, x.base = 4, noReg
		}
		if sib>>3&7 != 4 || x.rex&2 != 0 {
			x.base = noReg
		}
	case mod == 0 && rm == 5:
		bytes, x.base, x.relative = 4, noReg, true
	}
	if len(code)-at < bytes {
		return 0, false
	}
	switch bytes {
	case 1:
		x.disp = int32(int8(code[at]))
	case 4:
		x.disp = int32(binary.LittleEndian.Uint32(code[at:]))
	}
	return at + bytes, true
}
