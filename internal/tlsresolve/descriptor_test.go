package tlsresolve

import (
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// words is memory in 64-bit words.
type words map[uint64]uint64

func (m words) ReadAt(p []byte, addr uint64) error { return fakemem.Words(m).ReadAt(p, addr) }

func (m words) code(addr uint64, code string) {
	b := append([]byte(code), make([]byte, entryBytes)...)
	for i := uint64(0); i < entryBytes; i += 8 {
		m[addr+i] = binary.LittleEndian.Uint64(b[i:])
	}
}

func TestResolveDescriptor(t *testing.T) {
	const (
		slot  = 0x1000
		entry = 0x2000
		low   = 0x421a20 // a pointer in a non-PIE process
		gap   = 0x9000   // not mapped
		rela  = 0x7000   // relocations
		neg   = ^uint64(151)

		glibcDynamic = "\x48\x89\x74\x24\xf0\x64\x48\x8b\x34\x25\x08\x00\x00\x00"
		muslDynamic  = "\x48\x8b\x40\x08\x52\x64\x48\x8b\x14\x25\x08\x00\x00\x00\x51"
		// endbr64; push %rdi; push %rsi; sub $8,%rsp; mov %rax,%rdi; call *8(%rip): a lazy trampoline
		x86Lazy    = x86Landing + "\x57\x56\x48\x83\xec\x08\x48\x89\xc7\xff\x15\x08\x00\x00\x00"
		armDynamic = "\xe1\x0b\xbe\xa9\xe3\x13\x01\xa9\x44\xd0\x3b\xd5\x01\x04\x40\xf9"
		armMusl    = "\xe1\x0b\xbf\xa9\x41\xd0\x3b\xd5\x00\x04\x40\xf9\x22\x80\x5f\xf8" // stp; mrs x1; ldr; ldur
		// the static resolver's neighbour must not be looked at
		armOther = "\x00\x00\x80\xd2" + armRet + armDynamic
		armNop32 = armNOP + armNOP + armNOP + armNOP
	)
	tests := []struct {
		name       string
		machine    elf.Machine
		code       string // "": not mapped
		entry, arg uint64
		libc       Libc
		want       Location
		err        error
	}{
		{"static", elf.EM_X86_64, x86Static, entry, neg, Glibc, Location{Offset: -152}, nil},
		{"static endbr64", elf.EM_X86_64, x86Landing + x86Static, entry, neg, Musl, Location{Offset: -152}, nil},
		{"static no libc", elf.EM_X86_64, x86Static, entry, neg, UnknownLibc, Location{Offset: -152}, nil},
		{"static positive", elf.EM_X86_64, x86Static, entry, low, Glibc, Location{}, ErrImplausible},
		{"static far", elf.EM_X86_64, x86Static, entry, 1 << 63, Glibc, Location{}, ErrImplausible},
		{"static unreadable", elf.EM_X86_64, "", gap, neg, Glibc, Location{Offset: -152}, nil},
		{"static unknown code", elf.EM_X86_64, x86Lazy, entry, neg, Glibc, Location{Offset: -152}, nil},
		{"dynamic", elf.EM_X86_64, glibcDynamic, entry, low, Glibc, Location{record.TLSDTVGlibc, 0x18, 3, 9}, nil},
		{"dynamic endbr64", elf.EM_X86_64, x86Landing + glibcDynamic, entry, low, Glibc, Location{record.TLSDTVGlibc, 0x18, 3, 9}, nil},
		{"dynamic musl", elf.EM_X86_64, muslDynamic, entry, low, Musl, Location{record.TLSDTVMusl, 0x18, 3, 0}, nil},
		{"dynamic no libc", elf.EM_X86_64, glibcDynamic, entry, low, UnknownLibc, Location{}, ErrUnknownLibc},
		{"dynamic unreadable", elf.EM_X86_64, "", gap, low, Glibc, Location{record.TLSDTVGlibc, 0x18, 3, 9}, nil},
		{"dynamic fault", elf.EM_X86_64, glibcDynamic, entry, gap, Glibc, Location{}, fakemem.ErrUnmapped},
		{"weak", elf.EM_X86_64, x86Weak, entry, low, Glibc, Location{}, ErrUndefinedWeak},
		{"weak endbr64", elf.EM_X86_64, x86Landing + x86Weak, entry, low, Glibc, Location{}, ErrUndefinedWeak},
		{"lazy", elf.EM_X86_64, x86Lazy, entry, low, Glibc, Location{}, ErrUnknownResolver},
		{"lazy, old glibc", elf.EM_X86_64, x86Lazy, entry, rela, Glibc, Location{}, ErrLazy},
		{"lazy, another slot's", elf.EM_X86_64, x86Lazy, entry, rela + 24, Glibc, Location{}, ErrUnknownResolver},
		{"lazy, not readable", elf.EM_X86_64, x86Lazy, entry, gap, Glibc, Location{}, ErrUnknownResolver},
		{"empty", elf.EM_X86_64, "", 0, 0, Glibc, Location{}, ErrNotRelocated},
		{"half written", elf.EM_X86_64, x86Static, entry, 0, Glibc, Location{}, ErrNotRelocated},
		{"other half", elf.EM_X86_64, x86Static, 0, low, Glibc, Location{}, ErrNotRelocated},

		{"aarch64 static", elf.EM_AARCH64, armStatic, entry, 160, Glibc, Location{Offset: 160}, nil},
		{"aarch64 static nop", elf.EM_AARCH64, armNOP + armStatic, entry, 160, Musl, Location{Offset: 160}, nil},
		{"aarch64 static bti", elf.EM_AARCH64, armBTI + armStatic, entry, 160, Glibc, Location{Offset: 160}, nil},
		{"aarch64 static in TCB", elf.EM_AARCH64, armStatic, entry, 8, Glibc, Location{}, ErrImplausible},
		{"aarch64 static large", elf.EM_AARCH64, armStatic, entry, low, Glibc, Location{Offset: low}, nil},
		{"aarch64 static unreadable", elf.EM_AARCH64, "", gap, 160, Glibc, Location{Offset: 160}, nil},
		{"aarch64 dynamic", elf.EM_AARCH64, armDynamic, entry, low, Glibc, Location{record.TLSDTVGlibc, 0x18, 3, 9}, nil},
		{"aarch64 dynamic bti", elf.EM_AARCH64, armBTI + armDynamic, entry, low, Glibc, Location{record.TLSDTVGlibc, 0x18, 3, 9}, nil},
		{"aarch64 dynamic musl", elf.EM_AARCH64, armMusl, entry, low, Musl, Location{record.TLSDTVMusl, 0x18, 3, 0}, nil},
		{"aarch64 dynamic unreadable", elf.EM_AARCH64, "", gap, low, Glibc, Location{record.TLSDTVGlibc, 0x18, 3, 9}, nil},
		{"aarch64 weak", elf.EM_AARCH64, armWeak, entry, low, Glibc, Location{}, ErrUndefinedWeak},
		{"aarch64 weak bti", elf.EM_AARCH64, armBTI + armWeak, entry, low, Glibc, Location{}, ErrUndefinedWeak},
		{"aarch64 other", elf.EM_AARCH64, armOther, entry, low, Glibc, Location{}, ErrUnknownResolver},
		{"aarch64 lazy", elf.EM_AARCH64, armOther, entry, rela, Glibc, Location{}, ErrUnknownResolver},
		{"aarch64 lazy, old glibc", elf.EM_AARCH64, armOther, entry, rela + 48, Glibc, Location{}, ErrLazy},
		{"aarch64 nops", elf.EM_AARCH64, armNop32, entry, low, Glibc, Location{}, ErrUnknownResolver},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := words{slot: test.entry, slot + 8: test.arg}
			m[low], m[low+8], m[low+16] = 3, 0x18, 9
			m[rela], m[rela+8] = slot, 7<<32|uint64(elf.R_X86_64_TLSDESC)
			m[rela+24], m[rela+32] = slot+16, 7<<32|uint64(elf.R_X86_64_TLSDESC)
			m[rela+48], m[rela+56] = slot, 7<<32|uint64(elf.R_AARCH64_TLSDESC)
			if test.code != "" {
				m.code(entry, test.code)
			}
			p := Plan{machine: test.machine, model: Descriptor, slot: slot}
			got, err := p.Resolve(m, 0, Target{Machine: test.machine, Libc: test.libc})
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestResolverWindow(t *testing.T) {
	// Code of a dynamic resolver that begins behind the window is not seen.
	nops := strings.Repeat("\x90", entryBytes-8)
	require.Equal(t, resolverUnknown, x86Resolver([]byte(nops + "\x64\x48\x8b\x34\x25\x08\x00\x00\x00")[:entryBytes]))
	// mov %fs:0,%rax and mov %fs:0x28,%rax load something else.
	require.Equal(t, resolverUnknown, x86Resolver([]byte("\x64\x48\x8b\x04\x25\x00\x00\x00\x00\xc3")))
	require.Equal(t, resolverUnknown, x86Resolver([]byte("\x64\x48\x8b\x04\x25\x28\x00\x00\x00\xc3")))
}

func TestResolveIndexBounds(t *testing.T) {
	tests := []struct {
		module, offset uint64
		adjust         int64
		err            error
	}{
		{1, 0, 0, nil},
		{maxModule, maxOffset - 1, 0, nil},
		{0, 0, 0, ErrImplausible},
		{maxModule + 1, 0, 0, ErrImplausible},
		{1, maxOffset, 0, ErrImplausible},
		{1, 0, -1, ErrImplausible},
		{0x3fe0, 7<<32 | 36, 0, ErrImplausible}, // an Elf64_Rela, as old trampolines point at
	}
	for _, test := range tests {
		m := words{0: test.module, 8: test.offset, 16: 0}
		p := Plan{machine: elf.EM_X86_64, adjust: test.adjust}
		_, err := p.resolveIndex(m, 0, Target{Libc: Glibc})
		require.ErrorIs(t, err, test.err, "%+v", test)
	}
}
