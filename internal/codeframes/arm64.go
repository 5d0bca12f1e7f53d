package codeframes

import "encoding/binary"

// Numbers of registers. 31 is the stack pointer or the register of zeros.
const (
	armFP = 29
	armRA = 30
	armSP = 31
)

// nowhere is an offset at which nothing is ever saved.
const nowhere = 1

// arm64Machine follows aarch64: the return address is in x30 at the entry of a function.
func arm64Machine() machine {
	return machine{decode: decodeARM64, align: 4, entry: state{reached: true, spKnown: true}, link: true, kept: 0x7ff << 19}
}

// word is an instruction (Arm Architecture Reference Manual, C4.1).
type word uint32

func (w word) rd() int { return int(w & 31) }
func (w word) rn() int { return int(w >> 5 & 31) }

// signed returns the field of some bits from a bit on.
func (w word) signed(from, bits int) int64 {
	return int64(uint64(w)<<(64-from-bits)) >> (64 - bits)
}

func (w word) is(mask, value word) bool { return w&mask == value }

func decodeARM64(code []byte, at int, vaddr uint64) instruction {
	if len(code)-at < 4 {
		return instruction{}
	}
	before := code[:at]
	code = code[at:]
	w := word(binary.LittleEndian.Uint32(code))
	i := instruction{size: 4}
	switch {
	case w == 0xd503201f: // nop
		i.padding = true
	case w < 1<<16, w.is(0xffe0001f, 0xd4200000): // udf, brk
		i.flow, i.padding = flowStop, w == 0
	case w.is(0x1c000000, 0x14000000):
		w.branches(&i, vaddr)
	case w.is(0x1c000000, 0x10000000):
		w.immediate(&i, vaddr, code)
	case w.is(0x3a000000, 0x28000000):
		w.pair(&i)
	case w.is(0x0a000000, 0x08000000):
		w.single(&i)
	case w.is(0x0e000000, 0x0a000000):
		w.register(&i, before)
	case w.is(0x7f20fc00, 0x1e200000), w.is(0x7f200000, 0x1e000000):
		if opcode := w >> 16 & 7; opcode != 2 && opcode != 3 && opcode != 7 { // to a general register
			i.overwriteARM(w.rd())
		}
	case w.is(0xbfe0dc00, 0x0e000c00): // umov, smov
		i.overwriteARM(w.rd())
	case w.is(0xffa0f000, 0x04205000) && w.rd() == armSP: // addvl, addpl: by as much as the processor's vectors have
		i.effect = effectLoseSP
	case w.is(0xffa0f000, 0x04205000), w.is(0xffbff000, 0x04bf5000), w.is(0xff20e000, 0x0420e000): // and rdvl, cnt, inc, dec
		i.overwriteARM(w.rd())
	}
	return i
}

// overwriteARM notes that a register, 31 being that of zeros, gets a value that is not known.
func (i *instruction) overwriteARM(reg int) {
	i.writes.add(reg)
	switch reg {
	case armFP:
		i.effect = effectLoseFP
	case armRA:
		i.effect = effectLoseRA
	}
}

func (w word) branches(i *instruction, vaddr uint64) {
	to := func(from, bits int) uint64 { return vaddr + uint64(w.signed(from, bits)*4) }
	switch {
	case w.is(0xfc000000, 0x14000000): // b
		i.flow, i.target = flowJump, to(0, 26)
	case w.is(0xfc000000, 0x94000000): // bl
		i.flow, i.target = flowCall, to(0, 26)
	case w.is(0xff000000, 0x54000000), w.is(0x7e000000, 0x34000000): // b.cond, cbz, cbnz
		i.flow, i.target = flowBranch, to(5, 19)
	case w.is(0x7e000000, 0x36000000): // tbz, tbnz
		i.flow, i.target = flowBranch, to(5, 14)
	case w.is(0xfe000000, 0xd6000000):
		switch kind := w >> 21 & 7; {
		case kind == 1:
			i.flow = flowCallIndirect
		case kind == 2 && (w.rn() == armRA || w>>10&3 != 0):
			i.flow = flowReturn
		default:
			i.flow = flowJumpIndirect
		}
	case w.is(0xfff00000, 0xd5300000): // mrs
		i.overwriteARM(w.rd())
	}
}

// immediate is arithmetic with a number.
func (w word) immediate(i *instruction, vaddr uint64, code []byte) {
	rd, rn := w.rd(), w.rn()
	switch {
	case w.is(0x1f000000, 0x10000000): // adr, adrp
		i.overwriteARM(rd)
		distance := w.signed(5, 19)<<2 | int64(w>>29&3)
		if i.address = vaddr + uint64(distance); w>>31 != 0 {
			i.address = w.page(vaddr, distance, code)
		}
	case w.is(0xbf800000, 0x91000000): // add, sub of 64 bits without flags
		n := int32(w >> 10 & 0xfff << (12 * (w >> 22 & 1)))
		if w>>30&1 != 0 {
			n = -n
		}
		switch {
		case rd == armSP && rn == armSP:
			i.pre = n
		case rd == armFP && rn == armSP:
			i.effect, i.n = effectFPFromSP, n
			i.writes.add(rd)
		case rd == armSP && rn == armFP:
			i.effect, i.n = effectSPFromFP, n
		case rd == armSP:
			i.effect = effectLoseSP
		default:
			i.overwriteARM(rd)
		}
	case rd == armSP && (w.is(0x3f800000, 0x11000000) || w.is(0x1f800000, 0x12000000) && w>>29&3 != 3):
		i.effect = effectLoseSP // with other bits of the stack pointer, as to align it
	case rd == armFP && w.is(0xffffffe0, 0xd2800000): // mov x29, #0
		i.effect = effectZeroFP
	default:
		i.overwriteARM(rd)
	}
}

// page returns the address that an adrp and the add behind it make, 0 if there is none.
func (w word) page(vaddr uint64, distance int64, code []byte) uint64 {
	for at := 4; at <= 12 && at+4 <= len(code); at += 4 {
		next := word(binary.LittleEndian.Uint32(code[at:]))
		if next.is(0xffc00000, 0x91000000) && next.rn() == w.rd() {
			return vaddr&^0xfff + uint64(distance<<12) + uint64(next>>10&0xfff)
		}
	}
	return 0
}

// pair is a load or store of two registers.
func (w word) pair(i *instruction) {
	vector, load, mode := w>>26&1 != 0, w>>22&1 != 0, w>>23&3
	size := int32(4)
	switch {
	case vector:
		size = 4 << (w >> 30)
	case w>>31 != 0:
		size = 8
	case !load && w>>30 == 1: // stgp, with a tag
		size = 16
	}
	first := int32(w.signed(15, 7)) * size
	i.memory(w.rn(), first, mode&1 == 0)
	i.moves(w.rn(), mode == 3, mode == 1, first)
	if mode == 1 || mode == 3 {
		first = 0
	}
	if !vector {
		i.transfer(w.rd(), w.rn(), load, size == 8, first)
		i.transfer(int(w>>10&31), w.rn(), load, size == 8, first+size)
	}
}

// single is a load or store of one register, or something else with memory.
func (w word) single(i *instruction) {
	vector, size := w>>26&1 != 0, w>>30
	load := w>>22&3 != 0
	switch {
	case w.is(0x3b000000, 0x39000000): // with an offset
		at := int32(w>>10&0xfff) << size
		i.memory(w.rn(), at, true)
		if !vector {
			i.transfer(w.rd(), w.rn(), load, size == 3, at)
		}
	case w.is(0x3b200000, 0x38000000):
		at, mode := int32(w.signed(12, 9)), w>>10&3
		i.memory(w.rn(), at, mode&1 == 0)
		i.moves(w.rn(), mode == 3, mode == 1, at)
		if mode&1 != 0 {
			at = 0
		}
		if !vector {
			i.transfer(w.rd(), w.rn(), load, size == 3, at)
		}
	case vector:
		if w.is(0xbf800000, 0x0c800000) && w.rn() == armSP { // of structures, then adds to the address
			i.effect = effectLoseSP
		}
	case w.is(0x3f000000, 0x08000000): // exclusive, ordered
		if load {
			i.overwriteARM(w.rd())
		} else {
			i.overwriteARM(int(w >> 16 & 31))
		}
	case w.is(0xff200400, 0xd9200400): // a tag, then or first adds to the address
		mode := w >> 10 & 3
		i.moves(w.rn(), mode == 3, mode == 1, int32(w.signed(12, 9))*16)
	case w.is(0xff200c00, 0xd9200800): // a tag
	default: // at a literal, with an offset in a register, atomic
		if load || !w.is(0x3b200c00, 0x38200800) {
			i.overwriteARM(w.rd())
		}
	}
}

// memory notes what a load or store goes by.
func (i *instruction) memory(base int, at int32, offset bool) {
	if base == armSP {
		i.stack, i.stackAt = offset, at
	} else {
		i.uses.add(base)
	}
}

// moves notes what a load or store does to its base register.
func (i *instruction) moves(base int, before, after bool, n int32) {
	switch {
	case !before && !after:
	case base != armSP:
		i.overwriteARM(base)
	case before:
		i.pre = n
	default:
		i.post = n
	}
}

// transfer notes the load or store of a register.
func (i *instruction) transfer(reg, base int, load, wide bool, at int32) {
	if load {
		i.writes.add(reg)
	}
	if reg != armFP && reg != armRA || !load && (base != armSP || !wide) {
		return
	}
	if base != armSP || !wide {
		at = nowhere
	}
	i.load, i.store = load, !load
	if reg == armFP {
		i.hasFP, i.fpAt = true, at
	} else {
		i.hasRA, i.raAt = true, at
	}
}

// maxBefore bounds how many instructions a number is put into a register before it is used.
const maxBefore = 8

// constant returns the number that the code before puts into a register: frames too large for
// an instruction are made that way. Whether that is what happens is seen where the function
// returns.
func constant(reg int, before []byte) (n int32, ok bool) {
	for at := len(before) - 4; at >= 0 && len(before)-at <= 4*maxBefore; at -= 4 {
		w := word(binary.LittleEndian.Uint32(before[at:]))
		part, high := int64(w>>5&0xffff), w>>21&3
		switch {
		case w.is(0x1c000000, 0x14000000): // branches
			return 0, false
		case w.rd() != reg:
		case w.is(0x7fc00000, 0x52800000) && high < 2: // mov
			v := int64(n) + part<<(16*high)
			return int32(v), v <= maxFrame
		case w.is(0xffe00000, 0xf2a00000) && n == 0: // movk of the upper half
			if n = int32(part << 16); n < 0 || n > maxFrame {
				return 0, false
			}
		case w.is(0x0e000000, 0x0a000000), w.is(0x1c000000, 0x10000000), w.is(0x1e000000, 0x04000000):
			return 0, false // something else
		}
	}
	return 0, false
}

// register is arithmetic with registers.
func (w word) register(i *instruction, before []byte) {
	if w.is(0xffe0ffe0, 0xaa0003e0) { // mov
		i.uses.add(int(w >> 16 & 31))
	}
	switch rd := w.rd(); {
	case w.is(0x1fe00000, 0x1a400000): // ccmp
	case w.is(0xbfe0ffff, 0x8b2063ff): // add, sub of a register to the stack pointer
		n, ok := constant(int(w>>16&31), before)
		if w>>30&1 != 0 {
			n = -n
		}
		if i.pre = n; !ok {
			i.effect = effectLoseSP
		}
	case w.is(0x1fe00000, 0x0b200000) && rd == armSP && w>>29&1 == 0:
		i.effect = effectLoseSP
	case w == 0xaa1f03fd: // mov x29, xzr
		i.effect = effectZeroFP
	default:
		i.overwriteARM(rd)
	}
}
