package cell

import "github.com/customlabels/otelcol-customlabels/internal/record"

// The axes whose values all combine.
var (
	executables = [...]Load{PIE, NoPIE, StaticPIE, StaticExe}
	models      = [...]Model{LocalExec, InitialExec, GeneralDynamic, Descriptor}
	surpluses   = [...]Surplus{Fits, Exhausted, Off}
)

// usualAlign is that of a pointer; the usual place is behind other variables.
const usualAlign = 8

// List returns all cells of a target.
func List(t Target) []Cell {
	var l list
	for abi := record.ABIV0; abi <= record.ABIThreadContext; abi++ {
		l.loads(Cell{Target: t, ABI: abi, Place: Place{Align: usualAlign}})
	}
	v1 := Cell{Target: t, ABI: record.ABIV1, Place: Place{Align: usualAlign}}
	l.places(v1)
	l.looks(v1)
	return l
}

type list []Cell

// add appends a cell with some axes changed, if there is such a thing.
func (l *list) add(c Cell, load Load, m Model, change ...func(*Cell)) {
	c.Load, c.Model = load, m
	if c.Libc == Glibc && c.Load.Later() {
		c.Surplus = Fits
	}
	for _, f := range change {
		f(&c)
	}
	if c.exists() {
		*l = append(*l, c)
	}
}

// loads adds every load with every model and every state of the surplus.
func (l *list) loads(c Cell) {
	for _, m := range models {
		for _, load := range executables {
			l.add(c, load, m)
		}
		for _, load := range []Load{Startup, Extern, Interposed, Twice, Mixed} {
			l.add(c, load, m)
		}
		if c.Libc != Glibc {
			l.add(c, Dlopen, m)
			continue
		}
		for _, s := range surpluses {
			l.add(c, Dlopen, m, func(c *Cell) { c.Surplus = s })
		}
	}
}

// places adds the other places of the variable in its block: they enter into
// the offset from the thread pointer, in a way that differs by architecture and
// by who lays out the blocks: the linker for an executable (each kind has
// another start-up code), or the dynamic loader, at start or later.
func (l *list) places(c Cell) {
	for _, first := range []bool{true, false} {
		for _, align := range []int{8, 64, 256, 4096} {
			place := func(c *Cell) { c.Place = Place{first, align} }
			if first || align != usualAlign {
				for _, load := range executables {
					l.add(c, load, LocalExec, place)
				}
				for _, m := range models {
					l.add(c, Startup, m, place)
					l.add(c, Dlopen, m, place)
				}
			}
		}
	}
}

// looks adds what changes how symbol and relocation are found in a file.
func (l *list) looks(c Cell) {
	for _, look := range []Look{
		Sibling, Unreferenced, Versioned, Hidden, SysvHash, GNUHash, BareSysv, BareGNU, RELR, Stripped,
	} {
		set := func(c *Cell) { c.Look = look }
		l.add(c, PIE, LocalExec, set)
		l.add(c, NoPIE, LocalExec, set)
		for _, m := range models {
			l.add(c, Startup, m, set)
			l.add(c, Dlopen, m, set)
			if look.module() {
				l.add(c, Startup, m, set, atStart)
				l.add(c, Dlopen, m, set, atStart)
			}
			if look.module() && c.Libc == Glibc {
				l.add(c, Dlopen, m, set, func(c *Cell) { c.Surplus = Off })
			}
		}
	}
	for _, load := range []Load{Extern, Interposed, Twice, Mixed} {
		for _, m := range models {
			l.add(c, load, m, atStart)
		}
	}
}

// atStart puts the variable at offset 0, where what the loader writes into a
// slot can be what the file has there already.
func atStart(c *Cell) { c.Place.First = true }

// module reports whether what there is of relocations is for the module: they
// depend on the place, and on whether the block is static, in another way.
func (l Look) module() bool {
	return l == Sibling || l == Unreferenced || l == Versioned || l == Hidden
}

// Later reports whether a library is loaded after the program has started.
func (l Load) Later() bool { return l == Dlopen || l == Twice || l == Mixed }

// executable reports whether only the executable defines the variable.
func (c Cell) executable() bool {
	return c.Load == PIE || c.Load == NoPIE || c.Load == StaticPIE || c.Load == StaticExe
}

// exists tells which combinations of axes there are.
func (c Cell) exists() bool {
	library := !c.executable()
	switch {
	case library && c.Model == LocalExec:
		return false // linkers refuse it: the offset is not known
	case c.Arch == AArch64 && c.Compiler == Clang && c.Model == GeneralDynamic:
		return false // clang knows descriptors only
	case c.Libc == Musl && c.Load.Later() && c.Model == InitialExec:
		return false // musl has no static surplus and refuses such a library
	case c.Load.Later() && c.Model == InitialExec && c.Place.Align > c.maxSurplusAlign():
		return false // neither does glibc give more alignment than it has
	}
	switch c.Look {
	case Sibling:
		// With initial-exec, what is relocated is the sibling's own offset.
		return library && c.Model != InitialExec
	case Unreferenced:
		// Without a reference there is no model: let one stand for all.
		return library && c.Model == GeneralDynamic || library && c.Arch == AArch64 && c.Compiler == Clang && c.Model == Descriptor
	case Versioned:
		return library
	case RELR:
		// musl reads it from 1.2.4 on, GNU ld writes it for aarch64 from 2.43 on.
		// An executable that is not PIE has no relative relocations.
		return c.Libc == Glibc && c.Load != NoPIE && (c.Arch == X86 || c.Compiler == Clang)
	}
	return true
}

// maxSurplusAlign is the alignment of glibc's static TLS area when nothing that
// is there at start wants more: TLS_TCB_ALIGN of sysdeps/ARCH/nptl/tls.h.
func (t Target) maxSurplusAlign() int {
	if t.Arch == AArch64 {
		return 16
	}
	return 64
}
