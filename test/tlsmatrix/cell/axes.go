package cell

import (
	"strconv"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Target is what a cell is built for, and by what.
type Target struct {
	Arch     string // x86_64, aarch64
	Libc     string // glibc, musl
	Compiler string // gcc (with GNU ld), clang (with lld)
}

// The values of the axes of a Target.
const (
	X86     = "x86_64"
	AArch64 = "aarch64"
	Glibc   = "glibc"
	Musl    = "musl"
	GCC     = "gcc"
	Clang   = "clang"
)

// Targets returns all targets of an architecture.
func Targets(arch string) []Target {
	return []Target{
		{arch, Glibc, GCC}, {arch, Glibc, Clang}, {arch, Musl, GCC}, {arch, Musl, Clang},
	}
}

func (t Target) String() string { return t.Arch + "-" + t.Libc + "-" + t.Compiler }

// Load says where the variable is defined.
type Load string

// The loads. The first four are executables that define it themselves.
const (
	PIE        Load = "pie"
	NoPIE      Load = "nopie"
	StaticPIE  Load = "staticpie"
	StaticExe  Load = "static"     // symbols in .symtab only
	Startup    Load = "startup"    // a library that the program is linked to
	Extern     Load = "extern"     // the same, and the executable refers to its variable
	Dlopen     Load = "dlopen"     // a library loaded later
	Interposed Load = "interposed" // executable and startup library, one variable
	Twice      Load = "twice"      // two libraries loaded later, RTLD_LOCAL, each with its own
	Mixed      Load = "mixed"      // executable, startup library and one loaded later, three ABIs
)

// Model is the TLS model that the code is compiled for. Linkers relax it to
// local-exec in executables.
type Model string

// The models.
const (
	LocalExec      Model = "le"
	InitialExec    Model = "ie"
	GeneralDynamic Model = "gd"
	Descriptor     Model = "desc"
)

// Surplus is the state of the static surplus that glibc keeps for libraries
// loaded later.
type Surplus string

// The states; none where there is no such thing.
const (
	Fits      Surplus = "fits"
	Exhausted Surplus = "exhausted" // another library has used it up
	Off       Surplus = "off"       // by GLIBC_TUNABLES
)

// Place is where in its TLS block the variable is.
type Place struct {
	First bool // at offset 0, else behind other variables
	Align int
}

func (p Place) String() string {
	if p.First {
		return "first" + strconv.Itoa(p.Align)
	}
	return "after" + strconv.Itoa(p.Align)
}

// Look says what is particular about the ELF file of the (last) definer.
type Look string

// The looks; none for what compiler and linker make by default.
const (
	Plain        Look = ""
	Sibling      Look = "sibling"       // no relocation against the variable, but one against another
	Unreferenced Look = "unreferenced"  // no TLS relocation at all
	Versioned    Look = "versioned"     // two versions of the symbol
	Hidden       Look = "hidden"        // symbol in .symtab only
	SysvHash     Look = "sysvhash"      // DT_HASH only
	GNUHash      Look = "gnuhash"       // DT_GNU_HASH only
	BareSysv     Look = "bare-sysvhash" // no section headers either
	BareGNU      Look = "bare-gnuhash"
	RELR         Look = "relr"     // relative relocations packed
	Stripped     Look = "stripped" // no .symtab
)

// Cell is one program of the matrix.
type Cell struct {
	Target
	ABI     record.ABI
	Load    Load
	Model   Model
	Surplus Surplus
	Place   Place
	Look    Look
}

// Name of the cell among those of its target, made of its axes.
func (c Cell) Name() string {
	parts := []string{abiName(c.ABI), string(c.Load), string(c.Model)}
	if c.Surplus != "" {
		parts = append(parts, string(c.Surplus))
	}
	parts = append(parts, c.Place.String())
	if c.Look != Plain {
		parts = append(parts, string(c.Look))
	}
	return strings.Join(parts, "-")
}

// Dir is where the files of the cell are, below the directory of the corpus.
func (c Cell) Dir() string { return c.Target.String() + "/" + c.Name() }

func abiName(a record.ABI) string {
	switch a {
	case record.ABIV0:
		return "v0"
	case record.ABIV1:
		return "v1"
	}
	return "ctx"
}

// rotate returns the ABI that comes n after another.
func rotate(a record.ABI, n int) record.ABI {
	abis := []record.ABI{record.ABIV0, record.ABIV1, record.ABIThreadContext}
	return abis[(int(a-record.ABIV0)+n)%len(abis)]
}
