//go:build linux

package tlsmatrix

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

// Every file of the corpus is what the name of its cell says, for all
// architectures, and no two cells have one name.
func TestCorpus(t *testing.T) {
	dir := corpusDir(t)
	names := map[string]bool{}
	files := 0
	for _, arch := range []string{cell.X86, cell.AArch64} {
		for _, target := range cell.Targets(arch) {
			for _, c := range cell.List(target) {
				require.False(t, names[c.Dir()], c.Dir())
				names[c.Dir()] = true
				if err := checkProgram(c, c.Program(dir)); err != nil {
					t.Errorf("%s: program: %v", c.Dir(), err)
				}
				for _, s := range c.Sources(dir) {
					files++
					if err := checkDefiner(c, s); err != nil {
						t.Errorf("%s: %s: %v", c.Dir(), filepath.Base(s.Path), err)
					}
				}
			}
		}
	}
	t.Logf("%d cells, %d files with a definition", len(names), files)
}

func checkProgram(c cell.Cell, path string) error {
	e, err := openELF(path)
	if err != nil {
		return err
	}
	loader := slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	position := e.Type == elf.ET_DYN
	wantLoader := c.Load != cell.StaticExe && c.Load != cell.StaticPIE
	wantPosition := c.Load != cell.StaticExe && c.Load != cell.NoPIE && c.Load != cell.Extern
	machine := map[string]elf.Machine{cell.X86: elf.EM_X86_64, cell.AArch64: elf.EM_AARCH64}[c.Arch]
	switch {
	case e.Machine != machine:
		return fmt.Errorf("machine %s", e.Machine)
	case loader != wantLoader:
		return fmt.Errorf("has a loader: %v", loader)
	case position != wantPosition:
		return fmt.Errorf("position-independent: %v", position)
	}
	return nil
}

func checkDefiner(c cell.Cell, s cell.Source) error {
	e, err := openELF(s.Path)
	if err != nil {
		return err
	}
	look := c.Look
	return firstOf(
		e.checkSymbols(look, s.ABI.Symbol(), c),
		e.checkRelocations(c, s),
		expect("section headers", len(e.Sections) > 0, look != cell.BareSysv && look != cell.BareGNU),
		expect("RELR", e.tags[36] != 0, look == cell.RELR), // DT_RELR
		expect("versions", e.tags[elf.DT_VERDEF] != 0, look == cell.Versioned),
		e.checkHash(look),
	)
}

func (e *anELF) checkHash(look cell.Look) error {
	sysv, gnu := e.tags[elf.DT_HASH] != 0, e.tags[elf.DT_GNU_HASH] != 0
	switch look {
	case cell.SysvHash, cell.BareSysv:
		return firstOf(expect("DT_HASH", sysv, true), expect("DT_GNU_HASH", gnu, false))
	case cell.GNUHash, cell.BareGNU:
		return firstOf(expect("DT_HASH", sysv, false), expect("DT_GNU_HASH", gnu, true))
	}
	return nil
}

// checkSymbols checks where the variable's symbol is to be found, and what it
// says of the place.
func (e *anELF) checkSymbols(look cell.Look, name string, c cell.Cell) error {
	if e.tls == nil || e.tls.Align < uint64(c.Place.Align) {
		return fmt.Errorf("TLS segment %+v", e.tls)
	}
	if len(e.Sections) == 0 {
		return nil // debug/elf cannot tell; the complete file is the same
	}
	symbol, exported := tlsSymbol(e.dynamic, name)
	local, listed := tlsSymbol(e.static, name)
	if !exported {
		symbol = local
	}
	wantExported := look != cell.Hidden && c.Load != cell.StaticExe
	if c.Load == cell.StaticPIE { // a matter of linker and C library
		wantExported = exported
	}
	wantPlace := symbol.Value%uint64(c.Place.Align) == 0 && (symbol.Value == 0) == c.Place.First
	return firstOf(
		expect("dynamic symbol", exported, wantExported),
		expect(".symtab", listed || look == cell.Versioned, look != cell.Stripped),
		expect(fmt.Sprintf("place %#x", symbol.Value), wantPlace, true),
	)
}

// checkRelocations checks that a library uses the TLS model, and no other, in
// the way of its look. Linkers relax executables as they please.
func (e *anELF) checkRelocations(c cell.Cell, s cell.Source) error {
	if !strings.HasSuffix(s.Path, ".so") {
		return nil
	}
	named, anonymous := 0, 0
	for _, r := range e.relocated {
		if model := modelOf(e.Machine, r.typ); model != string(c.Model) {
			return fmt.Errorf("has a relocation of model %s", model)
		}
		switch r.symbol {
		case "":
			anonymous++
		case s.ABI.Symbol():
			named++
		default:
			return fmt.Errorf("has a relocation against %s", r.symbol)
		}
	}
	wantNamed := c.Look != cell.Sibling && c.Look != cell.Unreferenced && c.Look != cell.Hidden && c.Look != cell.Versioned
	return firstOf(
		expect("relocation against the symbol", named > 0, wantNamed),
		expect("relocation for the module", anonymous > 0, c.Look != cell.Unreferenced && !wantNamed),
	)
}

func expect(what string, got, want bool) error {
	if got != want {
		return fmt.Errorf("%s: %v, not %v", what, got, want)
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
