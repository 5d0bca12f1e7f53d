package codeframes

// x86Machine follows x86-64: the return address lies at CFA - 8, where the stack pointer
// points at the entry of a function.
func x86Machine() machine {
	return machine{
		decode: decodeX86,
		align:  1,
		entry:  state{reached: true, spKnown: true, sp: -8, raWhere: saved, raSlot: -8},
		kept:   1<<3 | 1<<x86FP | 0xf<<12, // rbx, rbp, r12 to r15
	}
}

func decodeX86(code []byte, at int, vaddr uint64) instruction {
	x, ok := parseX86(code[at:])
	if !ok {
		return instruction{}
	}
	i := instruction{size: x.size}
	next := vaddr + uint64(x.size)
	switch {
	case x.vex:
		i.overwrite(x.vectorWrites())
	case x.opMap == 0:
		x.oneByte(&i, next)
	case x.opMap == 1:
		x.twoBytes(&i, next)
	case x.opMap == 2 && x.op >= 0xf0:
		i.overwrite(x.reg, noReg) // movbe, crc32, adcx
	case x.opMap == 3 && x.op >= 0x14 && x.op <= 0x17:
		i.overwrite(x.rm, noReg) // pextr, extractps
	}
	if x.base == x86SP {
		i.stack, i.stackAt = x.op != 0x8d || x.opMap != 0, x.disp
	} else {
		i.uses.add(x.base)
	}
	return i
}

// overwrite notes that up to two registers get values that are not known.
func (i *instruction) overwrite(a, b int) {
	i.writes.add(a)
	i.writes.add(b)
	switch sp, fp := a == x86SP || b == x86SP, a == x86FP || b == x86FP; {
	case sp && fp:
		i.effect = effectLoseBoth
	case sp:
		i.effect = effectLoseSP
	case fp:
		i.effect = effectLoseFP
	}
}

// overwriteByte is the same for instructions on bytes: without REX, registers 4 to 7 are the
// second bytes of 0 to 3.
func (i *instruction) overwriteByte(x *x86, a, b int) {
	if x.rex != 0 {
		i.overwrite(a, b)
	}
}

// vectorWrites returns the general registers that an instruction with a VEX prefix writes.
func (x *x86) vectorWrites() (a, b int) {
	switch {
	case x.opMap == 1 || x.opMap == 5:
		switch x.op {
		case 0x2c, 0x2d, 0x50, 0x78, 0x79, 0x93, 0xc5, 0xd7:
			return x.reg, noReg
		case 0x7e:
			if x.rep == 0 {
				return x.rm, noReg
			}
		}
	case x.opMap == 2 && x.op == 0xf3:
		return x.vvvv, noReg
	case x.opMap == 2 && x.op >= 0xf2:
		return x.reg, x.vvvv
	case x.opMap == 3 && x.op >= 0x14 && x.op <= 0x17:
		return x.rm, noReg
	case x.opMap == 3 && x.op == 0xf0:
		return x.reg, noReg
	case x.opMap >= 8:
		return x.reg, x.vvvv
	}
	return noReg, noReg
}

// oneByte tells what an instruction does whose opcode is a byte.
func (x *x86) oneByte(i *instruction, next uint64) {
	low := int(x.op&7) | int(x.rex&1)<<3
	switch op := x.op; {
	case op < 0x40:
		x.arithmetic(i)
	case op < 0x58:
		i.push(low == x86FP)
		i.store, i.hasAP = i.store || low == x86AP, low == x86AP
	case op < 0x60:
		i.pop(low)
	case op == 0x68 || op == 0x6a || op == 0x9c:
		i.push(false)
	case op == 0x9d:
		i.pop(noReg)
	case op == 0x63 || op == 0x69 || op == 0x6b:
		i.overwrite(x.reg, noReg)
	case op >= 0x70 && op < 0x80 || op >= 0xe0 && op < 0xe4:
		i.flow, i.target = flowBranch, next+uint64(x.imm)
	case op == 0x84 || op == 0x85:
		i.uses.add(x.reg)
		i.uses.add(x.rm)
	case op == 0x80:
		i.overwriteByte(x, x.unlessCompare(), noReg)
	case op == 0x81 || op == 0x83:
		x.immediate(i)
	case op == 0x86:
		i.overwriteByte(x, x.reg, x.rm)
	case op == 0x87:
		i.overwrite(x.reg, x.rm)
	case op == 0x88 || op == 0xc6 || op == 0xc0 || op == 0xd0 || op == 0xd2 || op == 0xfe:
		i.overwriteByte(x, x.rm, noReg)
	case op == 0x8a:
		i.overwriteByte(x, x.reg, noReg)
	case op == 0x89:
		x.copied(i, x.rm, x.reg, true)
	case op == 0x8b:
		x.copied(i, x.reg, x.rm, false)
	case op == 0x8d:
		x.addressed(i, next)
	case op == 0x8f:
		i.pop(x.rm)
	case op == 0x90 && x.rex&1 == 0:
		i.padding = true
	case op >= 0x90 && op < 0x98:
		i.overwrite(low, noReg)
	case op >= 0xb0 && op < 0xb8:
		i.overwriteByte(x, low, noReg)
	case op >= 0xb8 && op < 0xc0:
		i.overwrite(low, noReg)
		i.address = uint64(x.imm)
	case op == 0xc7:
		i.overwrite(x.rm, noReg)
		if x.rm != noReg {
			i.address = uint64(x.imm)
		}
	case op == 0x8c || op == 0xc1 || op == 0xd1 || op == 0xd3:
		i.overwrite(x.rm, noReg)
	default:
		x.control(i, next)
	}
	if x.opSize && (i.pre != 0 || i.post != 0) {
		i.effect = effectLoseSP // 16 bits
	}
}

// control tells what instructions do that go elsewhere, and the rest of those above 0xc0.
func (x *x86) control(i *instruction, next uint64) {
	switch x.op {
	case 0xc2, 0xca, 0xcb, 0xcf:
		i.flow, i.effect = flowReturn, effectOddReturn
	case 0xc3:
		i.flow = flowReturn
	case 0xc8:
		i.effect = effectLoseBoth
	case 0xc9:
		i.effect = effectLeave
	case 0xcc:
		i.flow, i.padding = flowStop, true
	case 0xf4:
		i.flow = flowStop
	case 0xe8:
		i.flow, i.target = flowCall, next+uint64(x.imm)
		if x.imm == 0 { // how some code learns its own address
			i.flow = flowNext
			i.push(false)
		}
	case 0xe9, 0xeb:
		i.flow, i.target = flowJump, next+uint64(x.imm)
	case 0xf6, 0xf7:
		if x.reg&7 == 2 || x.reg&7 == 3 {
			i.overwrite(x.rm, noReg)
		}
	case 0xff:
		switch x.reg & 7 {
		case 0, 1:
			i.overwrite(x.rm, noReg)
		case 2, 3:
			i.flow = flowCallIndirect
		case 4, 5:
			i.flow = flowJumpIndirect
		case 6:
			i.push(x.rm == x86FP)
		}
	}
}

// twoBytes tells the same of an opcode behind 0x0f.
func (x *x86) twoBytes(i *instruction, next uint64) {
	switch op := x.op; {
	case op == 0x0b || op == 0xb9 || op == 0xff:
		i.flow = flowStop
	case op == 0x1f:
		i.padding = true
	case op&0xf0 == 0x80:
		i.flow, i.target = flowBranch, next+uint64(x.imm)
	case op&0xf0 == 0x90, op == 0xb0:
		i.overwriteByte(x, x.rm, noReg)
	case op == 0xa0 || op == 0xa8:
		i.push(false)
	case op == 0xa1 || op == 0xa9:
		i.pop(noReg)
	case op&0xf8 == 0xc8:
		i.overwrite(int(op&7)|int(x.rex&1)<<3, noReg)
	case op&0xf0 == 0x40, op == 0x02, op == 0x03, op == 0x50, op == 0xaf, op == 0xc5, op == 0xd7,
		op == 0xb6, op == 0xb7, op >= 0xbc && op <= 0xbf, op == 0xb8:
		i.overwrite(x.reg, noReg)
	case op == 0x2c || op == 0x2d:
		if x.rep != 0 {
			i.overwrite(x.reg, noReg)
		}
	case op == 0x7e:
		if x.rep == 0 {
			i.overwrite(x.rm, noReg)
		}
	case op == 0xba:
		if x.reg&7 != 4 {
			i.overwrite(x.rm, noReg)
		}
	case op == 0xc0:
		i.overwriteByte(x, x.reg, x.rm)
	case op == 0xc1:
		i.overwrite(x.reg, x.rm)
	case op == 0x00, op == 0x01, op == 0x20, op == 0x21, op == 0xa4, op == 0xa5, op == 0xab,
		op == 0xac, op == 0xad, op == 0xb1, op == 0xb3, op == 0xbb, op == 0xc7,
		op == 0xae && x.rep == 0xf3:
		i.overwrite(x.rm, noReg)
	}
}

func (i *instruction) push(fp bool) { i.pre, i.store, i.hasFP = -8, fp, fp }

func (i *instruction) pop(reg int) {
	i.post = 8
	i.writes.add(reg)
	switch reg {
	case x86FP:
		i.load, i.hasFP = true, true
	case x86AP:
		i.load, i.hasAP = true, true
	case x86SP:
		i.effect = effectLoseSP
	}
}

// arithmetic tells what add, or, adc, sbb, and, sub, xor and cmp do.
func (x *x86) arithmetic(i *instruction) {
	const sub, xor, compare = 5, 6, 7
	kind := x.op >> 3
	if x.op&7 > 3 {
		return
	}
	to, from := x.rm, x.reg
	if x.op&2 != 0 {
		to, from = from, to
	}
	if to != from {
		i.uses.add(from)
	}
	if kind == compare {
		i.uses.add(to)
		return
	}
	switch {
	case x.op&1 == 0:
		i.overwriteByte(x, to, noReg)
	case to == x86FP && from == x86FP && (kind == xor || kind == sub):
		i.effect = effectZeroFP
	default:
		i.overwrite(to, noReg)
	}
}

// unlessCompare returns the register that is written unless it is only compared.
func (x *x86) unlessCompare() int {
	if x.reg&7 == 7 {
		return noReg
	}
	return x.rm
}

// immediate tells what arithmetic with a number does.
func (x *x86) immediate(i *instruction) {
	const add, sub = 0, 5
	if x.rm != x86SP {
		i.uses.add(x.rm)
	}
	switch kind := x.reg & 7; {
	case x.rm == x86SP && x.wide() && kind == add:
		i.pre = int32(x.imm)
	case x.rm == x86SP && x.wide() && kind == sub && x.imm > -1<<31:
		i.pre = int32(-x.imm)
	default:
		i.overwrite(x.unlessCompare(), noReg)
	}
}

// copied tells what a mov of all 64 bits does.
func (x *x86) copied(i *instruction, to, from int, store bool) {
	if to != noReg {
		i.uses.add(from)
	}
	i.writes.add(to)
	switch {
	case !x.wide():
		i.overwrite(to, noReg)
	case to == x86FP && from == x86SP:
		i.effect = effectFPFromSP
	case to == x86SP && from == x86FP:
		i.effect = effectSPFromFP
	case to == noReg && store && from == x86FP && x.base == x86SP:
		i.store, i.hasFP, i.fpAt = true, true, x.disp
	case from == noReg && !store && to == x86AP && x.base == x86FP:
		i.effect, i.n = effectAPFromFrame, x.disp
	case from == noReg && !store && to == x86FP && x.base == x86SP:
		i.load, i.hasFP, i.fpAt = true, true, x.disp
	default:
		i.overwrite(to, noReg)
	}
}

// addressed tells what lea does.
func (x *x86) addressed(i *instruction, next uint64) {
	i.writes.add(x.reg)
	switch {
	case x.relative:
		i.address = next + uint64(int64(x.disp))
		i.overwrite(x.reg, noReg)
	case !x.wide() || x.base == noReg:
		i.overwrite(x.reg, noReg)
	case x.reg == x86SP && x.base == x86SP:
		i.pre = x.disp
	case x.reg == x86SP && x.base == x86FP:
		i.effect, i.n = effectSPFromFP, x.disp
	case x.reg == x86FP && x.base == x86SP:
		i.effect, i.n = effectFPFromSP, x.disp
	case x.reg == x86AP && x.base == x86SP:
		i.effect, i.n = effectAPFromSP, x.disp
	case x.reg == x86SP && x.base == x86AP:
		i.effect, i.n = effectSPFromAP, x.disp
	default:
		i.overwrite(x.reg, noReg)
	}
}
