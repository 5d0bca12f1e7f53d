package tlsresolve

import (
	"debug/elf"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// Model is the way in which a file reaches the variable.
type Model uint8

// The TLS models.
const (
	LocalExec      Model = iota // offset from the thread pointer known at link time
	InitialExec                 // a slot with the offset from the thread pointer (TPOFF64)
	Descriptor                  // a slot with a TLS descriptor (TLSDESC)
	GeneralDynamic              // slots with module id and offset (DTPMOD64, DTPOFF64)
	ModuleOnly                  // nothing in the file; the loader's list of libraries
)

// String returns the model's usual name.
func (m Model) String() string {
	switch m {
	case LocalExec:
		return "local-exec"
	case InitialExec:
		return "initial-exec"
	case Descriptor:
		return "TLSDESC"
	case GeneralDynamic:
		return "general-dynamic"
	case ModuleOnly:
		return "link map"
	}
	return "unknown"
}

// Plan says how to find one thread-local variable in any process that maps the
// file it was made from. It is a comparable value without references to the
// file.
type Plan struct {
	machine elf.Machine
	model   Model

	// offset is the variable's from the thread pointer (LocalExec).
	offset int64

	// value is the variable's offset in the file's own TLS block, image that
	// block's template, dynamicVaddr the virtual address of the dynamic section.
	value, dynamicVaddr uint64
	image               tlsImage

	// slot is the virtual address of what the loader relocates. LocalExec: 0,
	// or a TPOFF64 slot that must agree with offset.
	slot uint64

	// initial is what the file has in the two words of the slot; as long as
	// memory holds the same, the loader has not been there.
	initial [2]uint64

	// adjust is added to the relocated value to get to the variable: not 0
	// when the relocation is for another place in the module's block.
	adjust int64

	// offsetSlot tells that the word behind a DTPMOD64 slot is relocated
	// (DTPOFF64).
	offsetSlot bool
}

// tlsImage is a PT_TLS program header.
type tlsImage struct{ vaddr, filesz, memsz, align uint64 }

// Model returns the TLS model that the plan relies on.
func (p Plan) Model() Model { return p.model }

// NewPlan finds out how the file reaches the thread-local variable of the
// given name. The error is ErrNoSymbol, or tells what is wrong with the file.
// For a file without TLS segment it reads nothing.
func NewPlan(f *elffile.File, symbol string) (Plan, error) {
	tls, ok := f.TLS()
	if !ok {
		return Plan{}, ErrNoSymbol
	}
	sym, err := lookup(f, symbol)
	if err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", symbol, err)
	}
	if sym.Value >= tls.Memsz {
		return Plan{}, &elffile.FormatError{Off: tls.Vaddr, Msg: "TLS symbol outside of the TLS segment at address", Val: sym.Value}
	}
	slot, found, err := findSlot(f, sym)
	if err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", symbol, err)
	}
	p := Plan{machine: f.Machine, value: sym.Value, image: tlsImage{tls.Vaddr, tls.Filesz, tls.Memsz, tls.Align}}
	if s, ok := f.Dynamic(); ok {
		p.dynamicVaddr = s.Vaddr
	}
	if f.IsExecutable() {
		// Linkers relax every access to an executable's own variables to
		// local-exec. Where a TPOFF64 slot is left, it serves as a check.
		p.offset = LocalExecOffset(f.Machine, tls.Vaddr, tls.Memsz, tls.Align, sym.Value)
		if !found || slot.model != InitialExec {
			return p, nil
		}
	} else {
		if !found {
			p.model = ModuleOnly
			return p, nil
		}
		p.model = slot.model
	}
	p.slot, p.adjust, p.offsetSlot = slot.vaddr, slot.adjust, slot.offsetSlot
	if err := p.readInitial(f); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", symbol, err)
	}
	return p, nil
}

// lookup finds the symbol where the dynamic loader would, else in .symtab:
// static executables have nothing else, and hidden variables are only there.
func lookup(f *elffile.File, name string) (elffile.Symbol, error) {
	sym, ok, err := f.DynamicSymbol(name)
	if err != nil {
		return sym, err
	}
	if !ok {
		if sym, ok, err = f.TLSSymbol(name); err != nil {
			return sym, err
		}
	}
	if !ok || sym.Type != elf.STT_TLS {
		return sym, ErrNoSymbol
	}
	return sym, nil
}

func (p *Plan) readInitial(f *elffile.File) error {
	words := 1
	if p.model == Descriptor || p.model == GeneralDynamic {
		words = 2
	}
	for i := range words {
		w, err := f.ReadWord(p.slot + 8*uint64(i))
		if err != nil {
			return fmt.Errorf("read TLS slot: %w", err)
		}
		p.initial[i] = w
	}
	return nil
}
