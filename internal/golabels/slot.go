package golabels

import (
	"debug/elf"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// Slot is where a thread has its current goroutine. It is comparable.
type Slot struct {
	// Register: in the register that Go keeps it in (aarch64: x28), in programs
	// without C code. Else at Offset bytes from the thread pointer.
	Register bool
	Offset   int64
}

const wordBytes = 8

// findSlot finds out where the program's threads have g.
//
// A program without C code has no thread-local storage but Go's own, which it
// sets up itself: on x86-64 the word below the thread pointer (runtime·settls), on
// aarch64 none at all. One with C code has a TLS segment, in which the linker has
// placed the variable that Go's assembler knows as TLS: runtime.tlsg on x86-64,
// runtime.tls_g on aarch64. The linker of Go makes a segment of nothing else; its
// variables have no symbols then. It makes one for each position-independent program
// on aarch64, too, in which only those with C code have g: these need a C library.
func findSlot(f *elffile.File) (Slot, error) {
	tls, ok := f.TLS()
	name, alone := "runtime.tlsg", uint64(wordBytes)
	if f.Machine == elf.EM_AARCH64 {
		name, alone = "runtime.tls_g", 2*wordBytes // and tlsg behind it, which is unused
	}
	if !ok {
		if f.Machine == elf.EM_AARCH64 {
			return Slot{Register: true}, nil
		}
		return Slot{Offset: -wordBytes}, nil
	}
	if f.Machine == elf.EM_AARCH64 && tls.Vaddr == 0 && tls.Memsz == alone && tls.Filesz == 0 {
		needs, err := f.NeedsLibraries()
		if err != nil || !needs {
			return Slot{Register: true}, err
		}
	}
	value := uint64(0)
	sym, found, err := f.TLSSymbol(name)
	switch {
	case err != nil:
		return Slot{}, err
	case found && (sym.Value > tls.Memsz || tls.Memsz-sym.Value < wordBytes):
		return Slot{}, &elffile.FormatError{Off: tls.Vaddr, Msg: "TLS symbol outside of the TLS segment at address", Val: sym.Value}
	case found:
		value = sym.Value
	case tls.Memsz != alone || tls.Filesz != 0:
		return Slot{}, fmt.Errorf("%w: %d bytes of thread-local variables and no symbol %s", ErrSlot, tls.Memsz, name)
	}
	return Slot{Offset: tlsresolve.LocalExecOffset(f.Machine, tls.Vaddr, tls.Memsz, tls.Align, value)}, nil
}
