package writercheck

import (
	"path"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// maxReached bounds the libraries that are followed from a program.
const maxReached = 1024

// initial tells which files the dynamic loader loads at the start: those that the program asks
// for, and those that they ask for, by name, and what is preloaded.
type initial struct {
	known   bool // the program's own libraries could be read
	names   map[string]bool
	preload map[string]bool
}

// newInitial takes the libraries that the environment preloads, and those of /etc/ld.so.preload.
func newInitial(program *file, all []*file, preload []string) *initial {
	in := &initial{known: program != nil && program.librariesKnown, names: map[string]bool{}, preload: map[string]bool{}}
	for _, name := range preload {
		in.preload[path.Base(name)] = true
	}
	if !in.known {
		return in
	}
	byName := map[string]*file{}
	for _, f := range all {
		if f.soname != "" {
			byName[f.soname] = f
		}
		byName[path.Base(f.path)] = f
	}
	todo := append([]string(nil), program.needed...)
	for name := range in.preload {
		todo = append(todo, name)
	}
	for len(todo) > 0 && len(in.names) < maxReached {
		name := path.Base(todo[0])
		todo = todo[1:]
		if in.names[name] {
			continue
		}
		in.names[name] = true
		if f := byName[name]; f != nil {
			todo = append(todo, f.needed...)
		}
	}
	return in
}

// loaded judges whether a library was there from the start.
func (in *initial) loaded(t *tally, f *file, abi record.ABI) {
	format := formatOf(abi)
	id := format.rule(ruleLoaded)
	switch {
	case !format.custom():
	case f.executable:
		t.note(id, "the variable is in the executable")
	case !in.known:
		t.note(id, "it is not known which libraries the program asks for")
	default:
		ok := in.names[path.Base(f.path)] || f.soname != "" && in.names[f.soname]
		t.check(id, ok, "%s is %s", f.path, startText(ok))
	}
}

func startText(ok bool) string {
	if ok {
		return "loaded at the start"
	}
	return "asked for neither by the program nor by its libraries: it was loaded later"
}

// preloads are the names in LD_PRELOAD (ld.so(8)).
func preloads(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ' ' })
}

// preloadsOfFile are those in /etc/ld.so.preload, as glibc reads it (dl_main in its elf/rtld.c).
func preloadsOfFile(text string) (names []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		names = append(names, strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(": \t\n", r) })...)
	}
	return names
}
