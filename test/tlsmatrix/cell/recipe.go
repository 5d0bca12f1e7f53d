package cell

import (
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Names of the files of a cell, and of definers as the program tells them.
const (
	program = "program"
	exeName = "exe"
	libName = "lib"
	dlName  = "dl"
)

// definer is a file of a cell that holds a definition of the variable.
type definer struct {
	file string // in the directory of the cell
	name string
	part string // exe, lib, dl: see definer.c
	abi  record.ABI
	look Look
	// extern: it only refers to it.
	extern bool
}

// definers returns them in the order of start-up and loading.
func (c Cell) definers() []definer {
	exe := definer{file: program, name: exeName, part: exeName, abi: c.ABI}
	lib := definer{file: "lib.so", name: libName, part: libName, abi: c.ABI}
	dl := definer{file: "dl.so", name: dlName, part: dlName, abi: c.ABI}
	switch c.Load {
	case Startup:
		lib.look = c.Look
		return []definer{lib}
	case Extern:
		exe.extern = true
		return []definer{exe, lib}
	case Dlopen:
		dl.look = c.Look
		return []definer{dl}
	case Interposed:
		return []definer{exe, lib}
	case Twice:
		a, b := dl, dl
		a.file, a.name = "a.so", "a"
		b.file, b.name = "b.so", "b"
		return []definer{a, b}
	case Mixed:
		lib.abi, dl.abi = rotate(c.ABI, 1), rotate(c.ABI, 2)
		return []definer{exe, lib, dl}
	}
	exe.look = c.Look
	return []definer{exe}
}

// Args of the cell's program, when the corpus is in dir.
func (c Cell) Args(dir string) []string {
	args := []string{c.Dir()}
	if c.Surplus == Exhausted {
		args = append(args, "hog:"+dir+"/"+c.Target.String()+"/hog.so")
	}
	for _, d := range c.definers() {
		if d.part == dlName {
			args = append(args, "local:"+dir+"/"+c.Dir()+"/"+d.file)
		}
	}
	return args
}

// Program is the path of the cell's executable.
func (c Cell) Program(dir string) string { return dir + "/" + c.programIn() }

func (c Cell) programIn() string {
	if c.Load == Dlopen || c.Load == Twice {
		return c.Target.String() + "/" + program
	}
	return c.Dir() + "/" + program
}

// Env of the cell's program beside the ordinary one.
func (c Cell) Env() []string {
	if c.Surplus == Off {
		return []string{"GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0"}
	}
	return nil
}

// Source is what a reader has to find.
type Source struct {
	Definer string // as the program names it
	Path    string // of the file
	ABI     record.ABI
	Model   string // as in labelsource.Status
	Kind    string // of the location
	// Duplicate tells that it is the variable of another source.
	Duplicate bool
}

// Sources returns the label sources that a reader has to find in the program.
func (c Cell) Sources(dir string) []Source {
	var sources []Source
	for _, d := range c.definers() {
		if d.extern {
			continue
		}
		s := Source{Definer: d.name, Path: dir + "/" + c.Dir() + "/" + d.file, ABI: d.abi}
		s.Model, s.Kind = c.find(d)
		// A slot of the DTV can lead to the executable's variable too.
		s.Duplicate = c.Load == Interposed && d.part == libName && s.Kind == kindStatic
		sources = append(sources, s)
	}
	return sources
}

const kindStatic = "static"

// find returns how the variable of a definer is to be found: by which model,
// and at which kind of location.
func (c Cell) find(d definer) (model, kind string) {
	if d.part == exeName {
		return "local-exec", kindStatic
	}
	dtv := c.Libc + " DTV"
	switch {
	case d.look == Unreferenced && d.part == libName && c.Libc == Glibc:
		return "link map", kindStatic
	case d.look == Unreferenced:
		return "link map", dtv
	case c.Model == InitialExec:
		return "initial-exec", kindStatic
	case c.Model == GeneralDynamic && d.part == libName && c.Libc == Glibc:
		return "general-dynamic", kindStatic // what the loader keeps of the module says so
	case c.Model == GeneralDynamic:
		return "general-dynamic", dtv
	case d.part == libName, c.Libc == Glibc && c.room():
		return "TLSDESC", kindStatic
	}
	return "TLSDESC", dtv
}

// room reports whether glibc puts a library that is loaded later into the
// static surplus if it can.
func (c Cell) room() bool { return c.Surplus == Fits && c.Place.Align <= c.maxSurplusAlign() }

// String is for messages.
func (s Source) String() string {
	return fmt.Sprintf("%s %s %s %s", s.Definer, s.ABI, s.Model, s.Kind)
}
