package tlsresolve

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
)

// A TLS descriptor is a pair {entry, arg}: code to call, and its argument. What
// arg means is told by the code and by nothing else: a pointer and an offset
// cannot be told apart by size.

const (
	// entryBytes is how much code a resolver is recognized by: the dynamic
	// ones load the DTV or the thread pointer within their first three
	// instructions. More would reach into the function that follows.
	entryBytes = 32

	// maxStaticArg separates offsets from pointers on aarch64 when the code
	// cannot be read: nothing is mapped below it (vm.mmap_min_addr).
	maxStaticArg = 64 << 10
)

// The code of the resolvers of glibc (sysdeps/x86_64/dl-tlsdesc.S and
// sysdeps/aarch64/dl-tlsdesc.S) and musl (src/ldso/x86_64/tlsdesc.s and
// src/ldso/aarch64/tlsdesc.s), behind their landing pads.
const (
	x86Landing = "\xf3\x0f\x1e\xfa"     // endbr64
	x86Static  = "\x48\x8b\x40\x08\xc3" // mov 8(%rax),%rax; ret
	x86Weak    = "\x48\x8b\x40\x08" +   // mov 8(%rax),%rax
		"\x64\x48\x2b\x04\x25\x00\x00\x00\x00" + // sub %fs:0,%rax
		"\xc3" // ret

	armNOP    = "\x1f\x20\x03\xd5"
	armBTI    = "\x5f\x24\x03\xd5" // bti c
	armRet    = "\xc0\x03\x5f\xd6"
	armStatic = "\x00\x04\x40\xf9" + armRet // ldr x0,[x0,#8]; ret
	armWeak   = "\xe1\x0f\x1f\xf8" +        // str x1,[sp,#-16]!
		"\x00\x04\x40\xf9" + // ldr x0,[x0,#8]
		"\x41\xd0\x3b\xd5" + // mrs x1,tpidr_el0
		"\x00\x00\x01\xcb" // sub x0,x0,x1
)

type resolver uint8

const (
	resolverUnknown resolver = iota
	resolverStatic           // returns arg
	resolverDynamic          // arg points at {module, offset}
	resolverWeak             // no variable
)

func (p Plan) resolveDescriptor(mem Memory, bias uint64, env Target) (Location, error) {
	entry, arg, err := readPair(mem, bias+p.slot)
	if err != nil {
		return Location{}, fmt.Errorf("read TLSDESC slot: %w", err)
	}
	// The loader writes one word after the other, in either order. Neither is 0
	// at the end, nor what it was: linkers may put the addend into the second
	// (mold, lld --apply-dynamic-relocs), to which a static offset adds where the
	// block is. That is 0 in one case.
	if entry == 0 || entry == p.initial[0] {
		return Location{}, ErrNotRelocated
	}
	if (arg == 0 || arg == p.initial[1]) && !p.atThreadPointer(mem, bias, env, int64(arg)+p.adjust) {
		return Location{}, ErrNotRelocated
	}
	r, readable := readResolver(mem, p.machine, entry)
	if !readable || p.machine == elf.EM_X86_64 && r == resolverUnknown && int64(arg) < 0 {
		r = p.guessResolver(arg)
	}
	switch r {
	case resolverStatic:
		return p.static(arg, env.Libc)
	case resolverDynamic:
		return p.resolveIndex(mem, arg, env)
	case resolverWeak:
		return Location{}, ErrUndefinedWeak
	default:
		if p.lazy(mem, arg) {
			return Location{}, ErrLazy
		}
		return Location{}, fmt.Errorf("%w at %#x", ErrUnknownResolver, entry)
	}
}

// lazy reports whether an argument points at the slot's relocation, an Elf64_Rela {offset, info, addend}: so glibc
// before 2.34 leaves it until the first use (elf_machine_lazy_rel of 2.33, sysdeps/x86_64 and sysdeps/aarch64,
// dl-machine.h).
func (p Plan) lazy(mem Memory, arg uint64) bool {
	offset, info, err := readPair(mem, arg)
	return err == nil && offset == p.slot && info&math.MaxUint32 == uint64(relocTypesOf(p.machine).desc)
}

// resolveIndex reads what the argument of a dynamic descriptor points at: a
// tls_index {module, offset}, which glibc follows by the generation in which
// the module was loaded. That may be an older one when the module has taken over
// the id of another (sourceware bug 29039); the loader's table has the right one.
func (p Plan) resolveIndex(mem Memory, arg uint64, env Target) (Location, error) {
	module, offset, err := readPair(mem, arg)
	if err != nil {
		return Location{}, fmt.Errorf("read TLS index: %w", err)
	}
	generation := uint64(0)
	if env.Libc == Glibc {
		if generation, err = readWord(mem, arg+16); err != nil {
			return Location{}, fmt.Errorf("read TLS index: %w", err)
		}
	}
	return p.dynamic(mem, env, module, int64(offset)+p.adjust, generation)
}

// guessResolver decides by the argument, for code that cannot be read. On
// x86-64 offsets are negative and pointers are positive.
func (p Plan) guessResolver(arg uint64) resolver {
	static := int64(arg) < 0
	if p.machine == elf.EM_AARCH64 {
		static = arg < maxStaticArg
	}
	if static {
		return resolverStatic
	}
	return resolverDynamic
}

// readResolver looks at the code of a descriptor.
func readResolver(mem Memory, machine elf.Machine, entry uint64) (r resolver, readable bool) {
	var code [entryBytes]byte
	if mem.ReadAt(code[:], entry) != nil {
		return resolverUnknown, false
	}
	if machine == elf.EM_AARCH64 {
		return armResolver(code[:]), true
	}
	return x86Resolver(code[:]), true
}

func x86Resolver(code []byte) resolver {
	body := bytes.TrimPrefix(code, []byte(x86Landing))
	switch {
	case bytes.HasPrefix(body, []byte(x86Static)):
		return resolverStatic
	case bytes.HasPrefix(body, []byte(x86Weak)):
		return resolverWeak
	}
	// The dynamic ones load the DTV: mov %fs:8,%reg = 64 48 8b modrm 25 08 00 00 00.
	for i := 0; i+9 <= len(body); i++ {
		c := body[i : i+9]
		if c[0] == 0x64 && c[1] == 0x48 && c[2] == 0x8b && c[3]&0xc7 == 0x04 && c[4] == 0x25 &&
			binary.LittleEndian.Uint32(c[5:]) == 8 {
			return resolverDynamic
		}
	}
	return resolverUnknown
}

func armResolver(code []byte) resolver {
	body := bytes.TrimPrefix(bytes.TrimPrefix(code, []byte(armNOP)), []byte(armBTI))
	switch {
	case bytes.HasPrefix(body, []byte(armStatic)):
		return resolverStatic
	case bytes.HasPrefix(body, []byte(armWeak)):
		return resolverWeak
	}
	// The dynamic ones load the thread pointer: mrs xN,tpidr_el0.
	for i := 0; i+4 <= len(body) && string(body[i:i+4]) != armRet; i += 4 {
		if binary.LittleEndian.Uint32(body[i:])&^0x1f == 0xd53bd040 {
			return resolverDynamic
		}
	}
	return resolverUnknown
}
