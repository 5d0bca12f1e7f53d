package codeframes_test

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/codeframes"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const start = 0x1000

// codeCases are functions, and the rows that they have, in the words of describe.
var codeCases = []struct {
	name    string
	machine elf.Machine
	code    string
	begin   []uint64 // offsets of functions; nil: 0
	want    string
}{
	{
		name: "pushes", machine: elf.EM_X86_64,
		code: "\x55\x53\x48\x83\xec\x18" + // push rbp; push rbx; sub $24, rsp
			"\x48\x83\xc4\x18\x5b\x5d\xc3", // add $24, rsp; pop rbx; pop rbp; ret
		want: "0 sp+8 c-8 | 1 sp+16 c-8 fp@-16 | 2 sp+24 c-8 fp@-16 | 6 sp+48 c-8 fp@-16 | 10 sp+24 c-8 fp@-16 | 11 sp+16 c-8 fp@-16 | 12 sp+8 c-8",
	},
	{
		name: "frame pointer", machine: elf.EM_X86_64,
		code: "\x55\x48\x89\xe5\x48\x29\xc4" + // push rbp; mov rsp, rbp; sub rax, rsp
			"\x48\x8d\x65\xf8\x5b\x5d\xc3", // lea -8(rbp), rsp; pop rbx; pop rbp; ret
		want: "0 sp+8 c-8 | 1 sp+16 c-8 fp@-16 | 7 fp+16 c-8 fp@-16 | 11 sp+24 c-8 fp@-16 | 12 sp+16 c-8 fp@-16 | 13 sp+8 c-8",
	},
	{
		name: "leave", machine: elf.EM_X86_64,
		code: "\x55\x48\x8b\xec\x48\x83\xe4\xf0\xc9\xc3", // push rbp; mov rsp, rbp; and $-16, rsp; leave; ret
		want: "0 sp+8 c-8 | 1 sp+16 c-8 fp@-16 | 8 fp+16 c-8 fp@-16 | 9 sp+8 c-8",
	},
	{
		name: "frame register saved by a store, used for something else", machine: elf.EM_X86_64,
		code: "\x48\x83\xec\x10\x48\x89\x6c\x24\x08" + // sub $16, rsp; mov rbp, 8(rsp)
			"\x48\x89\xfd\x48\x8b\x6c\x24\x08\x48\x83\xc4\x10\xc3", // mov rdi, rbp; mov 8(rsp), rbp; add $16, rsp; ret
		want: "0 sp+8 c-8 | 4 sp+24 c-8 | 9 sp+24 c-8 fp@-16 | 17 sp+24 c-8 | 21 sp+8 c-8",
	},
	{
		name: "a way without a frame", machine: elf.EM_X86_64,
		code: "\x85\xff\x74\x03\x53\x5b\xc3\xc3", // test edi, edi; je 7; push rbx; pop rbx; ret; ret
		want: "0 sp+8 c-8 | 5 sp+16 c-8 | 6 sp+8 c-8",
	},
	{
		name: "ways that disagree", machine: elf.EM_X86_64,
		code: "\x85\xff\x74\x02\x53\x90\xc3", // test edi, edi; je 6; push rbx; nop; ret
		want: "",
	},
	{
		name: "ways that disagree and never return", machine: elf.EM_X86_64,
		code: "\x85\xff\x74\x01\x53\xeb\xfe", // test edi, edi; je 5; push rbx; jmp 5
		want: "0 sp+8 c-8",
	},
	{
		name: "a call by address before what is known", machine: elf.EM_X86_64,
		code: "\x85\xff\x74\x03\x50\xff\xd0\xc3", // test edi, edi; je 7; push rax; call *rax; ret
		want: "0 sp+8 c-8 | 5 sp+16 c-8 | 7 sp+8 c-8",
	},
	{
		name: "padding behind a call that is last", machine: elf.EM_X86_64,
		code: "\x50\xff\xd0\x90\x90", // push rax; call *rax; nop; nop
		want: "0 sp+8 c-8 | 1 sp+16 c-8",
	},
	{
		name: "an address without a base", machine: elf.EM_X86_64,
		code: "\x48\x8b\x04\xc5\x53\x53\x53\x53\xc3", // mov 0x53535353(, rax, 8), rax; ret
		want: "0 sp+8 c-8",
	},
	{
		name: "a return with a frame", machine: elf.EM_X86_64,
		code: "\x53\xc3",
		want: "",
	},
	{
		name: "a return that does not give the frame register back", machine: elf.EM_X86_64,
		code: "\x31\xc0\x48\x89\xfd\xc3", // xor eax, eax; mov rdi, rbp; ret
		want: "",
	},
	{
		name: "a return that takes arguments away", machine: elf.EM_X86_64,
		code: "\xc2\x08\x00",
		want: "",
	},
	{
		name: "the return address is taken from the stack", machine: elf.EM_X86_64,
		code: "\x5a\x0f\x05\x52\xc3", // pop rdx; syscall; push rdx; ret
		want: "0 sp+8 c-8",
	},
	{
		name: "the outermost function", machine: elf.EM_X86_64,
		code: "\x48\x31\xed\x48\x89\xe7\xe8\x01\x00\x00\x00\xf4\xc3", // xor rbp, rbp; mov rsp, rdi; call 12; hlt; ret
		want: "0 sp+8 c-8 | 3 end | 12 sp+8 c-8",
	},
	{
		name: "realigned", machine: elf.EM_X86_64,
		code: "\x4c\x8d\x54\x24\x08\x48\x83\xe4\xc0" + // lea 8(rsp), r10; and $-64, rsp
			"\x41\xff\x72\xf8\x55\x48\x89\xe5\x41\x52\x53" + // push -8(r10); push rbp; mov rsp, rbp; push r10; push rbx
			"\x48\x29\xc4\x49\x89\xc2" + // sub rax, rsp; mov rax, r10
			"\x48\x8d\x65\xf0\x5b\x41\x5a\x5d\x49\x8d\x62\xf8\xc3", // lea -16(rbp), rsp; pop rbx; pop r10; pop rbp; lea -8(r10), rsp; ret
		want: "0 sp+8 c-8 | 9 r10+0 c-8 | 17 r10+0 c-8 fp@fp | 19 *(fp-8) c-8 fp@fp | 34 r10+0 c-8 | 38 sp+8 c-8",
	},
	{
		name: "a thread", machine: elf.EM_X86_64,
		code: "\x0f\x05\x85\xc0\x75\x09" + // syscall; test eax, eax; jne 15
			"\x31\xed\x5f\x41\xff\xd1\x0f\x05\xf4\xc3", // xor ebp, ebp; pop rdi; call *r9; syscall; hlt; ret
		want: "0 sp+8 c-8 | 8 end | 15 sp+8 c-8",
	},
	{
		name: "zero in a frame register that was saved", machine: elf.EM_X86_64,
		code: "\x55\x31\xed\x5d\xc3",
		want: "0 sp+8 c-8 | 1 sp+16 c-8 fp@-16 | 4 sp+8 c-8",
	},
	{
		name: "a call that does not return", machine: elf.EM_X86_64,
		code: "\x50\xe8\x0a\x00\x00\x00" + // push rax; call 16
			"\x90\x90\x48\x83\xec\x28" + "\x90\x90\x90\x90" + // never gets here
			"\xeb\xfe", // jmp 16
		want: "0 sp+8 c-8 | 1 sp+16 c-8 | 16 sp+8 c-8",
	},
	{
		name: "a table of jumps", machine: elf.EM_X86_64,
		code: "\x53\x3e\xff\xe0" + // push rbx; notrack jmp *rax
			"\x31\xc0\x5b\xc3" + // xor eax, eax; pop rbx; ret
			"\xeb\xfa\x0f\x1f\x44\x00\x00", // jmp 4; nop
		want: "0 sp+8 c-8 | 1 sp+16 c-8 | 7 sp+8 c-8 | 8 sp+16 c-8",
	},
	{
		name: "a function behind another that nothing calls", machine: elf.EM_X86_64,
		code: "\x31\xc0\xc3\x66\x90\xcc\x53\x31\xc0\x5b\xc3", // xor eax, eax; ret; nop; int3; push rbx; ...
		want: "0 sp+8 c-8 | 6 sp+8 c-8 | 7 sp+16 c-8 | 10 sp+8 c-8",
	},
	{
		name: "what is behind and uses the registers of another", machine: elf.EM_X86_64,
		code: "\x31\xc0\xc3\x66\x90\x48\x8b\x43\x08\xc3", // xor eax, eax; ret; nop; mov 8(rbx), rax; ret
		want: "0 sp+8 c-8",
	},
	{
		name: "no instruction", machine: elf.EM_X86_64,
		code: "\x53\x06\x5b\xc3",
		want: "",
	},
	{
		name: "bytes of registers are no registers", machine: elf.EM_X86_64,
		code: "\xb4\x01\x88\xc5\x0f\x94\xc5\xc3", // mov $1, ah; mov al, ch; sete ch; ret
		want: "0 sp+8 c-8",
	},
	{
		name: "vector registers are none, either", machine: elf.EM_X86_64,
		code: "\x66\x0f\x6f\xe0\xc5\xf9\x6f\xe9\x62\xf1\x7d\x48\x6f\xe9\xc5\xf8\x77\xc3", // movdqa, vmovdqa, vmovdqa32 to 4 and 5; vzeroupper; ret
		want: "0 sp+8 c-8",
	},
	{
		name: "frame", machine: elf.EM_AARCH64,
		code: arm(0xa9be7bfd, 0x910003fd, 0xa90153f3, 0xa94153f3, 0xa8c27bfd, 0xd65f03c0), // stp x29, x30, [sp, #-32]!; mov x29, sp; stp x19, x20, [sp, #16]; ldp; ldp x29, x30, [sp], #32; ret
		want: "0 sp+0 lr | 4 sp+32 c-24 fp@-32 | 20 sp+0 lr",
	},
	{
		name: "large frame", machine: elf.EM_AARCH64,
		code: arm(0xd14007ff, 0xa9007bfd, 0xa9407bfd, 0x914007ff, 0xd65f03c0), // sub sp, sp, #4096; stp x29, x30, [sp]; ldp; add sp, sp, #4096; ret
		want: "0 sp+0 lr | 4 sp+4096 lr | 8 sp+4096 c-4088 fp@-4096 | 12 sp+4096 lr | 16 sp+0 lr",
	},
	{
		name: "a frame too large for an instruction", machine: elf.EM_AARCH64,
		code: arm(0xd2841a0c, 0xcb2c63ff, 0xa9007bfd, 0xa9407bfd, 0xd2841a0c, 0x8b2c63ff, 0xd65f03c0), // mov x12, #8400; sub sp, sp, x12; stp x29, x30, [sp]; ldp; mov x12, #8400; add sp, sp, x12; ret
		want: "0 sp+0 lr | 8 sp+8400 lr | 12 sp+8400 c-8392 fp@-8400 | 16 sp+8400 lr | 24 sp+0 lr",
	},
	{
		name: "only the link register", machine: elf.EM_AARCH64,
		code: arm(0xf81f0ffe, 0x94000003, 0xf84107fe, 0xd65f03c0, 0xd65f03c0), // str x30, [sp, #-16]!; bl 16; ldr x30, [sp], #16; ret; ret
		want: "0 sp+0 lr | 4 sp+16 c-16 | 12 sp+0 lr",
	},
	{
		name: "a size that is not known", machine: elf.EM_AARCH64,
		code: arm(0xa9bf7bfd, 0x910003fd, 0xcb2063ff, 0x910003bf, 0xa8c17bfd, 0xd65f03c0), // stp; mov x29, sp; sub sp, sp, x0; mov sp, x29; ldp; ret
		want: "0 sp+0 lr | 4 sp+16 c-8 fp@-16 | 12 fp+16 c-8 fp@-16 | 16 sp+16 c-8 fp@-16 | 20 sp+0 lr",
	},
	{
		name: "as many bytes as vectors have", machine: elf.EM_AARCH64,
		code: arm(0xa9bf7bfd, 0x910003fd, 0x043f57df, 0x043f505f, 0x910003bf, 0xa8c17bfd, 0xd65f03c0), // stp; mov x29, sp; addvl sp, sp, #-2; addvl sp, sp, #2; mov sp, x29; ldp; ret
		want: "0 sp+0 lr | 4 sp+16 c-8 fp@-16 | 12 fp+16 c-8 fp@-16 | 20 sp+16 c-8 fp@-16 | 24 sp+0 lr",
	},
	{
		name: "as many bytes as vectors have, twice", machine: elf.EM_AARCH64,
		code: arm(0xa9bf7bfd, 0x910003fd, 0x043f57df, 0x043f505f, 0xa8c17bfd, 0xd65f03c0), // the same without mov sp, x29
		want: "0 sp+0 lr | 4 sp+16 c-8 fp@-16 | 12 fp+16 c-8 fp@-16",                      // and none at ret
	},
	{
		name: "a frame of as many bytes as vectors have", machine: elf.EM_AARCH64,
		code: arm(0xa9bf7bfd, 0x910003fd, 0xd282020c, 0x0420e3ec, 0xcb2c63ff, 0x910003bf, 0xa8c17bfd, 0xd65f03c0), // stp; mov x29, sp; mov x12, #4112; cntb x12; sub sp, sp, x12; mov sp, x29; ldp; ret
		want: "0 sp+0 lr | 4 sp+16 c-8 fp@-16 | 20 fp+16 c-8 fp@-16 | 24 sp+16 c-8 fp@-16 | 28 sp+0 lr",
	},
	{
		name: "registers by the size of vectors", machine: elf.EM_AARCH64,
		code: arm(0xa9bf7bfd, 0x910003fd, 0xcb2063ff, 0x04bf503d, 0xd65f03c0), // stp; mov x29, sp; sub sp, sp, x0; rdvl x29, #1; ret
		want: "0 sp+0 lr | 4 sp+16 c-8 fp@-16 | 12 fp+16 c-8 fp@-16",
	},
	{
		name: "the link register by the size of vectors", machine: elf.EM_AARCH64,
		code: arm(0x04e0e3fe, 0xd503201f, 0xd65f03c0), // cntd x30; nop; ret
		want: "",                                      // as nothing of a function that does not return by it
	},
	{
		name: "tags of memory", machine: elf.EM_AARCH64,
		code: arm(0xa9be7bfd, 0xd93ff7ff, 0xd93fffff, 0xd9a00bff, 0xd96027e0, 0x69bf07e0, 0x690087e0, 0x688107e0, 0xa8c27bfd, 0xd65f03c0), // stp x29, x30, [sp, #-32]!; stg sp, [sp], #-16; stg sp, [sp, #-16]!; st2g sp, [sp]; stzg x0, [sp], #32; stgp x0, x1, [sp, #-32]!; stgp x0, x1, [sp, #16]; stgp x0, x1, [sp], #32; ldp; ret
		want: "0 sp+0 lr | 4 sp+32 c-24 fp@-32 | 8 sp+48 c-24 fp@-32 | 12 sp+64 c-24 fp@-32 | 20 sp+32 c-24 fp@-32 | 24 sp+64 c-24 fp@-32 | 32 sp+32 c-24 fp@-32 | 36 sp+0 lr",
	},
	{
		name: "the outermost function", machine: elf.EM_AARCH64,
		code: arm(0xd280001d, 0xd280001e, 0x910003e0, 0x94000002, 0xd4200000, 0xd65f03c0), // mov x29, #0; mov x30, #0; mov x0, sp; bl 20; brk; ret
		want: "0 sp+0 lr | 4 end | 20 sp+0 lr",
	},
	{
		name: "a table of jumps", machine: elf.EM_AARCH64,
		code:  arm(0xa9bf7bfd, 0xd61f0200, 0x94000003, 0xa8c17bfd, 0xd65f03c0, 0xd65f03c0), // stp; br x16; bl 20; ldp; ret; ret
		begin: []uint64{0, 20},
		want:  "0 sp+0 lr | 4 sp+16 c-8 fp@-16 | 16 sp+0 lr",
	},
}

// Code that goes on by jumps to addresses, as of compilers of functional languages, has frames of its own, and those
// of a few such functions among others are the processor's.
func TestHops(t *testing.T) {
	const bytes = 32
	function := func(end string) string { return strings.Repeat("\x90", bytes-len(end)) + end }
	hop, stub, returns := function("\xff\x23"), function("\xff\x20"), function("\xc3") // jmp *(rbx); jmp *(rax); ret
	for name, tc := range map[string]struct {
		code string
		rows bool
	}{
		"stubs": {strings.Repeat(stub, 14) + strings.Repeat(returns, 5), true},
		"most":  {strings.Repeat(hop, 14) + strings.Repeat(returns, 5), false},
		"a few": {strings.Repeat(hop, 5) + strings.Repeat(returns, 14), true},
		"small": {strings.Repeat(hop, 4) + returns, true},
	} {
		c := &codeframes.Code{Machine: elf.EM_X86_64, Regions: []codeframes.Region{{Start: start, Code: []byte(tc.code)}}}
		for at := range len(tc.code) / bytes {
			c.Functions = append(c.Functions, start+bytes*uint64(at))
		}
		rows, err := codeframes.Rows(c)
		require.NoError(t, err)
		got := false
		for _, r := range rows {
			got = got || r.Start == start
		}
		require.Equal(t, tc.rows, got, "%s: %s", name, describe(rows))
	}
}

// describe writes rows: what the CFA is from, where the return address is, and where the
// caller's frame register is, unless it is still in place.
func describe(rows []codeframes.Row) string {
	var all []string
	for i, r := range rows {
		if i > 0 && rows[i-1].End == r.Start && rows[i-1].Rule == r.Rule {
			continue
		}
		s := fmt.Sprintf("%d ", r.Start-start)
		switch r.Rule.CFA {
		case record.CFAEnd:
			all = append(all, s+"end")
			continue
		case record.CFASP:
			s += fmt.Sprintf("sp%+d", r.Rule.CFAOffset)
		case record.CFAReg:
			s += fmt.Sprintf("r%d%+d", r.Rule.Arg, r.Rule.CFAOffset)
		case record.CFADerefFP:
			s += fmt.Sprintf("*(fp%+d)", r.Rule.CFAOffset)
		case record.CFAFP:
			s += fmt.Sprintf("fp%+d", r.Rule.CFAOffset)
		}
		if r.Rule.RA == record.RARegister {
			s += " lr"
		} else {
			s += fmt.Sprintf(" c%+d", r.Rule.RAOffset)
		}
		switch r.Rule.FP {
		case record.FPOffset:
			s += fmt.Sprintf(" fp@%d", r.Rule.FPOffset)
		case record.FPFrame:
			s += " fp@fp"
		case record.FPUndefined:
			s += " fp?"
		}
		all = append(all, s)
	}
	return strings.Join(all, " | ")
}

// Where a process begins nothing has called, also before the code shows it: glibc's dynamic
// loader loads the program first. The entry of a library is a function like others.
func TestEntry(t *testing.T) {
	const loader = "\x48\x89\xe7\xe8\x00\x10\x00\x00" + // mov rsp, rdi; call 4104
		"\x49\x89\xc4\x48\x83\xe4\xf0\x31\xed" + // mov rax, r12; and $-16, rsp; xor ebp, ebp
		"\xe8\x00\x10\x00\x00\x41\xff\xe4" // call 4118; jmp *r12
	const library = "\x53\x5b\xc3" // push rbx; pop rbx; ret
	both := codeframes.Code{Machine: elf.EM_X86_64, Regions: []codeframes.Region{{Start: start, Code: []byte(loader + library)}}}
	both.Functions = []uint64{start, start + uint64(len(loader))}
	for _, c := range []struct {
		entry uint64
		want  string
	}{
		{start, "0 end | 25 sp+8 c-8 | 26 sp+16 c-8 | 27 sp+8 c-8"},
		{start + uint64(len(loader)), "0 sp+8 c-8 | 17 end | 25 sp+8 c-8 | 26 sp+16 c-8 | 27 sp+8 c-8"},
	} {
		both.Entry = c.entry
		rows, err := codeframes.Rows(&both)
		require.NoError(t, err)
		require.Equal(t, c.want, describe(rows))
	}
}

// The end of stacks is told from a program's entry alone: glibc's before 2.34, on aarch64, calls abort last and then
// the next function begins, which returns.
func TestEntryAlone(t *testing.T) {
	var code []byte
	for _, word := range []uint32{
		0xd280001d, 0xd280001e, // mov x29, #0; mov x30, #0
		0xaa0003e5, 0xf94003e1, // mov x5, x0; ldr x1, [sp]
		0x94000400, 0x94000400, // bl __libc_start_main; bl abort
		0xf947ac00, 0xb4000040, 0x14000400, 0xd65f03c0, // ldr x0, [x0, #3928]; cbz x0, .+8; b __gmon_start__; ret
		0xd503201f, 0xd503201f, // nop
	} {
		code = binary.LittleEndian.AppendUint32(code, word)
	}
	rows, err := codeframes.Rows(&codeframes.Code{
		Machine: elf.EM_AARCH64, Entry: start, Regions: []codeframes.Region{{Start: start, Code: code}},
	})
	require.NoError(t, err)
	require.Equal(t, "0 end", describe(rows))
}

func TestRows(t *testing.T) {
	for _, c := range codeCases {
		t.Run(c.machine.String()+" "+c.name, func(t *testing.T) {
			code := codeframes.Code{Machine: c.machine, Regions: []codeframes.Region{{Start: start, Code: []byte(c.code)}}}
			for _, at := range c.begin {
				code.Functions = append(code.Functions, start+at)
			}
			if c.begin == nil {
				code.Functions = []uint64{start}
			}
			rows, err := codeframes.Rows(&code)
			require.NoError(t, err)
			require.Equal(t, c.want, describe(rows))
		})
	}
}
