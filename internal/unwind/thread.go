package unwind

import (
	"bytes"
	"debug/elf"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// cloneBytes: on x86-64, clone and clone3 of glibc end their description before the system
// call that makes a thread, because of the thread's own stack. What follows is as short as
// this, up to where the thread begins, which is described again.
const cloneBytes = 32

// clone adds the code from the system call of clone to where the thread that it makes
// begins, if the text between two spans is that: nothing has been pushed there.
func (s *search) clone(before *span, start, end uint64) error {
	const syscall = "\x0f\x05"
	entry := record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}
	if s.b.machine.machine != elf.EM_X86_64 || end-start > cloneBytes || before.count == 0 || end-start < uint64(len(syscall)) {
		return nil
	}
	last := before.first + before.count - 1
	if s.b.rules[s.b.rows[last].Rule()] != entry {
		return nil
	}
	code, err := s.text(start, uint64(len(syscall)), end)
	if err != nil || string(code) != syscall {
		return err
	}
	s.b.stats.Clones++
	return s.b.constant(start, end, entry)
}

// contextCode is what a function returns to that glibc's makecontext has begun, on x86-64: the beginning of a function
// (__start_context) that nothing has called. Its description says that it has a caller.
const contextCode = "\x48\x89\xdc" + // mov %rbx, %rsp
	"\x48\x8b\x3c\x24" + // mov (%rsp), %rdi
	"\x48\x85\xff\x74" // test %rdi, %rdi; je

const (
	endbr64         = "\xf3\x0f\x1e\xfa"
	maxContextBytes = 64 // of the function
)

// context ends stacks before a function that has the contextCode, if there is nothing else before it: so an address in
// the instruction before a return address finds it.
func (s *search) context(of *span, end uint64) error {
	start := s.b.origin + uint64(of.start)
	if s.b.machine.machine != elf.EM_X86_64 || of.bytes > maxContextBytes || end-start < uint64(len(endbr64+contextCode)) {
		return nil
	}
	code, err := s.text(start, uint64(len(endbr64+contextCode)), end)
	if err != nil || !strings.HasPrefix(strings.TrimPrefix(string(code), endbr64), contextCode) {
		return err
	}
	s.b.stats.Clones++
	return s.b.constant(start-1, start, record.UnwindRule{CFA: record.CFAEnd})
}

// threadCode is where a thread of musl begins on aarch64, which is not described: unlike
// on x86-64, in versions that leave the frame pointer of the thread that made it.
const threadCode = "\xe1\x03\xc1\xa8" + // ldp x1, x0, [sp], #16
	"\x20\x00\x3f\xd6" + // blr x1
	"\xa8\x0b\x80\xd2" + // mov x8, #93 (exit)
	"\x01\x00\x00\xd4" // svc #0

// findThread returns where the first threadCode in b is, -1 if there is none.
func (a arch) findThread(b []byte, vaddr uint64) int {
	if a.machine != elf.EM_AARCH64 {
		return -1
	}
	for from := 0; ; from++ {
		i := bytes.Index(b[from:], []byte(threadCode))
		if i < 0 {
			return -1
		}
		if from += i; (vaddr+uint64(from))%4 == 0 {
			return from
		}
	}
}

// maxGoCloneBytes is longer than runtime.clone.
const maxGoCloneBytes = 512

// goThread returns where in a function of assembler the threads begin that it makes: in
// runtime.clone, behind the return to the caller that comes after the system call.
func (b *builder) goThread(r *gopclntab.Reader, f *gopclntab.Func) (entry uint64, ok bool) {
	if f.Flags&gopclntab.Assembly == 0 || f.End-f.Entry > maxGoCloneBytes {
		return 0, false
	}
	if name, err := r.Name(f); err != nil || name != "runtime.clone" {
		return 0, false
	}
	call, ret, step := "\x0f\x05", "\xc3", 1
	if b.machine.machine == elf.EM_AARCH64 {
		call, ret, step = "\x01\x00\x00\xd4", "\xc0\x03\x5f\xd6", 4
	}
	var text [maxGoCloneBytes]byte
	code := text[:f.End-f.Entry]
	if b.file.ReadVaddr(code, f.Entry) != nil {
		return 0, false
	}
	at := bytes.Index(code, []byte(call))
	for at >= 0 && at+len(ret) < len(code) {
		if string(code[at:at+len(ret)]) == ret {
			return f.Entry + uint64(at+len(ret)), true
		}
		at += step
	}
	return 0, false
}
