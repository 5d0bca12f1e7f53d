package tlsresolve

import (
	"debug/elf"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// maxOffsetSlots bounds the remembered DTPOFF64 relocations against our symbol;
// linkers make one.
const maxOffsetSlots = 64

// relocTypes are a machine's numbers of the dynamic TLS relocations.
type relocTypes struct{ tpoff, desc, dtpmod, dtpoff uint32 }

func relocTypesOf(m elf.Machine) relocTypes {
	if m == elf.EM_AARCH64 {
		return relocTypes{
			tpoff: uint32(elf.R_AARCH64_TLS_TPREL64), desc: uint32(elf.R_AARCH64_TLSDESC),
			dtpmod: uint32(elf.R_AARCH64_TLS_DTPMOD64), dtpoff: uint32(elf.R_AARCH64_TLS_DTPREL64),
		}
	}
	return relocTypes{
		tpoff: uint32(elf.R_X86_64_TPOFF64), desc: uint32(elf.R_X86_64_TLSDESC),
		dtpmod: uint32(elf.R_X86_64_DTPMOD64), dtpoff: uint32(elf.R_X86_64_DTPOFF64),
	}
}

// slot is a relocated place from which the variable can be found.
type slot struct {
	model  Model
	vaddr  uint64
	adjust int64
	// GeneralDynamic: the variable's offset in the module's block is to be read
	// from the word behind the slot.
	offsetSlot bool
}

// kin says whom a relocation is for. A lower one is the better evidence: one
// for the symbol itself leads to where the program really keeps the variable,
// even when another object's definition has taken its place. One for another
// variable of the file is no evidence at all: unless the linker has bound it
// and left out its name, it may tell about another object's definition.
type kin uint8

const (
	kinSelf   kin = iota // our symbol
	kinModule            // the module (symbol index 0)
	kinNone
)

// finder collects relocations while they stream by.
type finder struct {
	types   relocTypes
	sym     elffile.Symbol
	best    slot
	bestKin kin
	offsets []elffile.Relocation // DTPOFF64 against our symbol
}

// findSlot looks for the best relocation to find sym by. found is false when
// there is none.
func findSlot(f *elffile.File, sym elffile.Symbol) (s slot, found bool, err error) {
	c := finder{types: relocTypesOf(f.Machine), sym: sym, bestKin: kinNone}
	if err := f.Relocations(c.add); err != nil {
		return slot{}, false, err
	}
	if c.best.model == GeneralDynamic && c.bestKin == kinSelf {
		c.pairOffset()
	}
	return c.best, c.bestKin != kinNone, nil
}

func (c *finder) add(r elffile.Relocation) bool {
	model, ok := c.model(r.Type)
	self := c.sym.Index != 0 && r.Symbol == c.sym.Index
	switch {
	case r.Type == c.types.dtpoff:
		if self && len(c.offsets) < maxOffsetSlots {
			c.offsets = append(c.offsets, r)
		}
	case !ok:
	case self:
		c.offer(kinSelf, model, r, 0)
	case r.Symbol == 0:
		c.offer(kinModule, model, r, c.sym.Value)
	}
	return true
}

func (c *finder) model(typ uint32) (Model, bool) {
	switch typ {
	case c.types.tpoff:
		return InitialExec, true
	case c.types.desc:
		return Descriptor, true
	case c.types.dtpmod:
		return GeneralDynamic, true
	}
	return 0, false
}

// offer takes a relocation when it is better than the best so far: the nearer
// kin, then the model that needs less per thread. distance leads from the
// relocation's symbol (or the start of the block) to ours.
func (c *finder) offer(k kin, m Model, r elffile.Relocation, distance uint64) {
	if k > c.bestKin || k == c.bestKin && m >= c.best.model {
		return
	}
	c.bestKin = k
	c.best = slot{model: m, vaddr: r.Offset, adjust: int64(distance) - r.Addend}
	if m == GeneralDynamic { // only the module id is needed
		c.best.adjust = 0
	}
}

// pairOffset makes the plan read the offset from the word behind the module id
// when that is relocated too. Without DTPOFF64 the linker has bound the symbol
// to the file's own definition, whose offset is the symbol's value.
func (c *finder) pairOffset() {
	i := slices.IndexFunc(c.offsets, func(r elffile.Relocation) bool { return r.Offset == c.best.vaddr+8 })
	if i >= 0 {
		c.best.offsetSlot, c.best.adjust = true, -c.offsets[i].Addend
	}
}
