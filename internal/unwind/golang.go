package unwind

import (
	"debug/elf"
	"errors"
	"fmt"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/gopclntab"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// maxDelta bounds how far a function moves the stack pointer; Go's largest frame
// has 1 GiB (runtime.call1073741824).
const maxDelta = 1<<31 - 64

// noDelta is that of code in which the stack pointer is not known.
const noDelta = -1

// functionWork is what a function of Go's table counts of what is read of the file: its two
// entries and its description, which may lie anywhere.
const functionWork = 128

// readGo adds the rows of Go's functions, of which .eh_frame says nothing and
// .debug_frame, where it was not stripped, knows no frame register. They are
// made of pclntab, by which Go's runtime unwinds too. ok is false if the file
// has none.
func (b *builder) readGo() (ok bool, err error) {
	table, err := gopclntab.Find(b.file)
	if errors.Is(err, gopclntab.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find pclntab: %w", err)
	}
	r := gopclntab.NewReader(table, b.file.Source())
	defer r.Close()
	var stop error
	err = r.Functions(func(f gopclntab.Func) bool {
		if stop = b.file.Work(functionWork); stop != nil {
			return false
		}
		if f.End <= f.Entry || !b.executable(f.Entry, f.End) {
			b.stats.Counts[ReasonOutside]++
			return true
		}
		if f.Foreign {
			return true // the table does not know its stack; its instructions do
		}
		b.stats.GoFunctions++
		stop = b.goFunction(r, &f)
		return stop == nil
	})
	if stop != nil {
		err = stop
	}
	if err != nil {
		return true, fmt.Errorf("read pclntab: %w", err)
	}
	return true, nil
}

// goFunction adds the rows of one function.
func (b *builder) goFunction(r *gopclntab.Reader, f *gopclntab.Func) error {
	if f.Flags&gopclntab.Assembly != 0 && f.End-f.Entry <= maxGoTrampoline && b.isTrampoline(f.Entry, f.End) {
		_, lead, _ := b.machine.trampolines()
		return b.signalSpan(f.Entry-lead, f.End)
	}
	b.begin(f.Entry, f.End-f.Entry)
	var last uint16
	thread, isClone := b.goThread(r, f)
	switch {
	case b.isInjected(r, f):
		return b.goRows(r, f, b.interrupted)
	case b.isCrosscall(r, f):
		return b.goRows(r, f, b.crosscall)
	case f.Flags&gopclntab.TopFrame != 0:
		// Go's traceback ends at a signal, too; the kernel's frame behind it tells what was interrupted.
		if name, err := r.Name(f); err == nil && strings.HasPrefix(name, "runtime.sigtramp") {
			return b.goRows(r, f, b.goNumber)
		}
		last = b.ruleNumber(record.UnwindRule{CFA: record.CFAEnd})
	case isClone:
		maker := *f
		maker.End = thread
		if err := b.goRows(r, &maker, b.goNumber); err != nil {
			return err
		}
		return b.goRow(f.End-thread, b.ruleNumber(record.UnwindRule{CFA: record.CFAEnd}))
	case f.Flags&gopclntab.SPWrite != 0:
		last = b.ruleNumber(b.switchRule(r, f))
	case b.machine.machine == elf.EM_AARCH64 && f.Flags&gopclntab.Assembly != 0:
		return b.goRows(r, f, b.assembled())
	default:
		return b.goRows(r, f, b.goNumber)
	}
	return b.goRow(f.End-f.Entry, last)
}

// maxGoTrampoline is longer than what Go has its signal handlers return to.
const maxGoTrampoline = 64

// isTrampoline reports whether a function begins with one.
func (b *builder) isTrampoline(start, end uint64) bool {
	var code [maxTrampolineBytes]byte
	n := min(end-start, uint64(len(code)))
	if b.file.ReadVaddr(code[:n], start) != nil || !b.executable(start-1, end) {
		return false
	}
	at, _ := b.machine.findTrampoline(code[:n], start)
	return at == 0
}

// isInjected reports whether a function is one that a signal handler of Go's runtime makes a
// call of, at the instruction that was interrupted (unwindTrap in runtime/traceback.go;
// sigpanic0 in runtime/asm_amd64.s).
func (b *builder) isInjected(r *gopclntab.Reader, f *gopclntab.Func) bool {
	if !f.Special && f.Flags&gopclntab.Assembly == 0 {
		return false
	}
	switch name, err := r.Name(f); name {
	case "runtime.asyncPreempt", "runtime.sigpanic", "runtime.sigpanic0", "runtime.debugCallV2":
		return err == nil
	}
	return false
}

// isCrosscall reports whether a function is the one by which C calls Go, where that saves
// registers in its own way: on aarch64.
func (b *builder) isCrosscall(r *gopclntab.Reader, f *gopclntab.Func) bool {
	if b.machine.machine != elf.EM_AARCH64 || f.Flags&gopclntab.Assembly == 0 {
		return false
	}
	name, err := r.Name(f)
	return err == nil && name == "crosscall2"
}

// switchRule is the rule of a function that goes to another stack, with the frame register of its
// caller or, in newer releases, with 0 (runtime/asm_amd64.s, asm_arm64.s of Go 1.26). What
// runtime.mcall calls has left the goroutine: a 0 ends that stack. What runtime.morestack calls
// works for the goroutine.
func (b *builder) switchRule(r *gopclntab.Reader, f *gopclntab.Func) record.UnwindRule {
	rule := record.UnwindRule{CFA: record.CFASwitch}
	if name, err := r.Name(f); err == nil && name == "runtime.morestack" {
		rule.Arg = 1
	}
	return rule
}

// goRows adds a row for each change of the stack pointer in a function. rule has its number.
func (b *builder) goRows(r *gopclntab.Reader, f *gopclntab.Func, rule func(delta int32) uint16) error {
	var stop error
	at, last := f.Entry, int32(noDelta)
	row := func(end uint64) error {
		if end == at {
			return nil
		}
		number := uint16(0)
		if last >= 0 && last <= maxDelta {
			number = rule(last)
		}
		return b.goRow(end-at, number)
	}
	err := r.StackDeltas(f, func(start uint64, delta int32) bool {
		stop = row(start)
		at, last = start, delta
		return stop == nil
	})
	if stop != nil {
		return stop
	}
	if errors.Is(err, gopclntab.ErrSteps) {
		return &LimitError{"steps through pclntab", gopclntab.MaxFileSteps}
	}
	if err != nil {
		b.stats.Counts[ReasonMalformed]++
		last = noDelta
	}
	return row(f.End)
}

func (b *builder) goRow(bytes uint64, rule uint16) error {
	if bytes > 0 && !b.add(bytes, rule) {
		return &LimitError{"rows", uint64(b.limits.Rows)}
	}
	return nil
}

// knownDelta is a delta of the stack pointer and the number of its rule; 0: none.
type knownDelta struct {
	delta  int32
	number uint16
}

// goNumber returns the number of goRule of a delta.
func (b *builder) goNumber(delta int32) uint16 {
	latest := &b.latestDelta[uint32(delta)>>3%uint32(len(b.latestDelta))]
	if latest.delta != delta || latest.number == 0 {
		*latest = knownDelta{delta, b.ruleNumber(goRule(b.machine.machine, delta))}
	}
	return latest.number
}

// interrupted returns the number of interruptedRule of a delta.
func (b *builder) interrupted(delta int32) uint16 {
	return b.ruleNumber(interruptedRule(b.machine.machine, delta))
}

// assembled returns the numbers of the rules in a function written in assembly, by delta, on aarch64. Where
// it makes room for what it calls (callCgoMmap in runtime/sys_linux_arm64.s), its caller's registers stay
// in the frame that it has at first.
func (b *builder) assembled() func(delta int32) uint16 {
	frame := int32(0)
	return func(delta int32) uint16 {
		if frame == 0 {
			frame = delta
		}
		if delta <= frame {
			return b.goNumber(delta)
		}
		rule := goRule(b.machine.machine, frame)
		rule.CFAOffset = delta
		return b.ruleNumber(rule)
	}
}

// crosscall returns the number of crosscallRule of a delta.
func (b *builder) crosscall(delta int32) uint16 { return b.ruleNumber(crosscallRule(delta)) }

// goRule is the rule where the stack pointer is delta bytes below where it was at
// the entry of a function. Where there is a frame, the caller's frame register is
// saved in it.
//
// x86-64: the return address is above the frame, and below it the frame register.
// aarch64: the return address is at the stack pointer, and below it the frame
// register, outside of the frame.
func goRule(m elf.Machine, delta int32) record.UnwindRule {
	switch {
	case m == elf.EM_AARCH64 && delta == 0:
		return record.UnwindRule{CFA: record.CFASP, RA: record.RARegister}
	case m == elf.EM_AARCH64:
		return record.UnwindRule{CFA: record.CFASP, CFAOffset: delta, RAOffset: -delta, FP: record.FPOffset, FPOffset: -delta - 8}
	case delta == 0:
		return record.UnwindRule{CFA: record.CFASP, CFAOffset: 8, RAOffset: -8}
	}
	return record.UnwindRule{CFA: record.CFASP, CFAOffset: delta + 8, RAOffset: -8, FP: record.FPOffset, FPOffset: -16}
}

// crosscallRule is the rule in crosscall2 on aarch64, which has its caller's registers at the top
// of its frame, as C does (runtime/cgo/asm_arm64.s). It saves them some instructions after it has
// made the frame: in between, what is read is not the caller's.
func crosscallRule(delta int32) record.UnwindRule {
	rule := goRule(elf.EM_AARCH64, delta)
	if delta != 0 {
		rule.RAOffset, rule.FPOffset = -8, -16
	}
	return rule
}

// interruptedRule is the rule in a function that a signal handler of Go's runtime has called. On
// aarch64 the handler has put the link register of the interrupted function on its stack,
// which takes 16 bytes (runtime/signal_arm64.go, pushCall).
func interruptedRule(m elf.Machine, delta int32) record.UnwindRule {
	rule := goRule(m, delta)
	rule.RA |= record.RAInterrupted
	if m != elf.EM_AARCH64 {
		return rule
	}
	rule.CFAOffset += 16
	if delta != 0 {
		rule.RAOffset -= 16
		rule.FPOffset -= 16
	}
	return rule
}
