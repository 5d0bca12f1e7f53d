package cell

import (
	"fmt"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// File is one file to build. Paths in Inputs and Output are relative to the
// directory of the corpus, those of Sources to testdata/tls.
type File struct {
	Output  string
	Sources []string
	Inputs  []string
	Flags   []string // for the compiler, which also links
	// Bare, if not "", is Output without section headers.
	Bare string
}

// compileOnly is the flag of objects.
const compileOnly = "-c"

// Shared returns the files that cells of a target have in common: the objects
// of the program, the program that only loads libraries, and the library that
// takes the static surplus.
func Shared(t Target) []File {
	object := func(name, source string, flags ...string) File {
		return File{Output: t.String() + "/" + name, Sources: []string{source}, Flags: append(flags, compileOnly)}
	}
	files := []File{
		object("writer-pie.o", "writer.c", "-fPIE"),
		object("writer-nopie.o", "writer.c", "-fno-pie"),
		object("writer-static.o", "writer.c", "-DSTATIC", "-fPIE"),
		object("publish.o", "publish.c", "-fPIE"),
		{Output: t.String() + "/" + program, Inputs: t.programObjects(PIE), Flags: linkFlags(PIE)},
	}
	if t.Libc == Glibc {
		files = append(files, File{
			Output: t.String() + "/hog.so", Sources: []string{"hog.c"},
			Flags: append([]string{"-shared", "-fPIC"}, t.modelFlags(Descriptor)...),
		})
	}
	return files
}

// Files returns what is to be built for the cell alone.
func (c Cell) Files() []File {
	var libraries, files []File
	var linked []string
	for _, d := range c.definers() {
		if d.part == exeName {
			continue
		}
		f := c.library(d)
		libraries = append(libraries, f)
		if d.part == libName {
			linked = append(linked, f.Output)
		}
	}
	files = append(files, libraries...)
	if !strings.HasPrefix(c.programIn(), c.Dir()) {
		return files
	}
	return append(files, c.executableFile(linked))
}

// executableFile is the cell's own program, linked to libraries.
func (c Cell) executableFile(libraries []string) File {
	load := c.Load
	switch load {
	case Extern:
		load = NoPIE // only there the loader copies the library's variables
	case Startup, Interposed, Mixed:
		load = PIE
	}
	f := File{Output: c.Dir() + "/" + program, Inputs: c.programObjects(load), Flags: linkFlags(load)}
	for _, d := range c.definers() {
		if d.part != exeName {
			continue
		}
		f.Sources = []string{"definer.c"}
		m := c.Model
		if !c.executable() {
			m = LocalExec // the model is that of the libraries
		}
		f.Flags = append(f.Flags, c.definerFlags(d)...)
		switch {
		case d.extern:
			f.Flags = append(f.Flags, "-fno-pie")
		case m == LocalExec && load == NoPIE:
			f.Flags = append(f.Flags, "-fno-pie", "-ftls-model=local-exec")
		case m == LocalExec:
			f.Flags = append(f.Flags, "-fPIE", "-ftls-model=local-exec")
		default:
			// Compilers know that an executable can do with local-exec.
			f.Flags = append(append(f.Flags, "-fPIC"), c.modelFlags(m)...)
		}
		f.Flags = append(f.Flags, lookFlags(d.look)...)
		f.bare(c, d)
	}
	if c.exports() {
		f.Flags = append(f.Flags, "-rdynamic")
	}
	if len(libraries) > 0 {
		f.Inputs = append(f.Inputs, libraries...)
		f.Flags = append(f.Flags, "-Wl,--no-as-needed", "-Wl,-rpath,'$$ORIGIN'")
	}
	return f
}

// exports reports whether the executable's symbols are to be dynamic ones, which
// the ABIs ask for. Hidden symbols and static executables can't. In a static
// PIE, GNU ld then leaves a relocation of a TPOFF64 slot, which musl's start-up
// code knows nothing of: such a program crashes.
func (c Cell) exports() bool {
	crashes := c.Load == StaticPIE && c.Libc == Musl && c.Model != LocalExec
	return c.Load != StaticExe && c.Look != Hidden && !crashes
}

func (c Cell) library(d definer) File {
	f := File{Output: c.Dir() + "/" + d.file, Sources: []string{"definer.c"}}
	f.Flags = append([]string{"-shared", "-fPIC", "-Wl,-soname," + d.file}, c.modelFlags(c.Model)...)
	f.Flags = append(f.Flags, c.definerFlags(d)...)
	f.Flags = append(f.Flags, lookFlags(d.look)...)
	f.bare(c, d)
	return f
}

// bare makes the definer's file one without section headers. What is linked to
// a library takes the complete file: linkers need the headers.
func (f *File) bare(c Cell, d definer) {
	if d.look == BareSysv || d.look == BareGNU {
		f.Bare = f.Output
		f.Output = c.Dir() + "/complete-" + d.file
	}
}

func (t Target) programObjects(load Load) []string {
	kind := map[Load]string{PIE: "pie", NoPIE: "nopie", StaticPIE: "static", StaticExe: "static"}[load]
	return []string{t.String() + "/writer-" + kind + ".o", t.String() + "/publish.o"}
}

func linkFlags(load Load) []string {
	return map[Load][]string{
		PIE:       {"-pie"},
		NoPIE:     {"-no-pie"},
		StaticPIE: {"-static-pie"},
		StaticExe: {"-static", "-no-pie"},
	}[load]
}

func (c Cell) definerFlags(d definer) []string {
	flags := []string{
		fmt.Sprintf("-DABI=%d", d.abi-record.ABIV0), "-DPART=" + d.part, fmt.Sprintf("-DNAME='%q'", d.name),
		fmt.Sprintf("-DALIGN=%d", c.Place.Align),
	}
	if c.Place.First {
		flags = append(flags, "-DFIRST")
	}
	if d.extern {
		flags = append(flags, "-DEXTERN")
	}
	return flags
}

// modelFlags are for position-independent code.
func (t Target) modelFlags(m Model) []string {
	if m == InitialExec {
		return []string{"-ftls-model=initial-exec"}
	}
	dialect := map[Model]string{GeneralDynamic: "gnu", Descriptor: "gnu2"}[m]
	if t.Arch == AArch64 {
		dialect = map[Model]string{GeneralDynamic: "trad", Descriptor: "desc"}[m]
		if t.Compiler == Clang {
			return []string{"-ftls-model=global-dynamic"} // descriptors, always
		}
	}
	return []string{"-ftls-model=global-dynamic", "-mtls-dialect=" + dialect}
}

// lookFlags give a file its look.
func lookFlags(look Look) []string {
	switch look {
	case Sibling:
		return []string{"-DSIBLING"}
	case Unreferenced:
		return []string{"-DUNREFERENCED"}
	case Versioned:
		return []string{"-DVERSIONED", "-Wl,--version-script=definer.map"}
	case Hidden:
		return []string{"-DHIDDEN"}
	case SysvHash, BareSysv:
		return []string{"-Wl,--hash-style=sysv"}
	case GNUHash, BareGNU:
		return []string{"-Wl,--hash-style=gnu"}
	case RELR:
		return []string{"-Wl,-z,pack-relative-relocs"}
	case Stripped:
		return []string{"-Wl,-s"} // behind -Wl,-S, which it overrides
	}
	return nil
}
