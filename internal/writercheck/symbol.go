package writercheck

import (
	"debug/elf"
	"path"
	"regexp"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const versionSymbol = "custom_labels_abi_version"

// symbol is one that a format asks for, as a file has it.
type symbol struct {
	defined, exported bool
	threadLocal       bool
	size, value       uint64
}

// file is what a file has of the formats.
type file struct {
	path           string
	executable     bool
	interp         string // the dynamic loader that it asks for, "" if none
	soname         string
	needed         []string
	version        symbol
	variables      [record.NumABIs]symbol
	librariesKnown bool // soname and needed have been read
}

// publishes reports whether the file has anything of a format.
func (f *file) publishes() bool {
	for abi := range f.variables {
		if f.variables[abi].defined {
			return true
		}
	}
	return f.version.defined
}

// examine reads what a file has of the formats.
func examine(name string, e *elffile.File) *file {
	f := &file{path: name, executable: e.IsExecutable(), interp: e.Interp()}
	var err error
	f.soname, f.needed, err = e.Libraries()
	f.librariesKnown = err == nil
	f.version = findSymbol(e, versionSymbol, e.IntSymbol)
	for abi := record.ABIV0; abi < record.NumABIs; abi++ {
		if abi.Symbol() != "" {
			f.variables[abi] = findSymbol(e, abi.Symbol(), e.TLSSymbol)
		}
	}
	return f
}

func findSymbol(e *elffile.File, name string, hidden func(string) (elffile.Symbol, bool, error)) symbol {
	s, exported, err := e.DynamicSymbol(name)
	if err != nil {
		return symbol{}
	}
	if !exported {
		var ok bool
		if s, ok, err = hidden(name); err != nil || !ok {
			return symbol{}
		}
	}
	return symbol{
		defined: true, exported: exported && s.Visibility != elf.STV_HIDDEN && s.Visibility != elf.STV_INTERNAL,
		threadLocal: s.Type == elf.STT_TLS, size: s.Size, value: s.Value,
	}
}

// formatOf is the format of an ABI.
func formatOf(abi record.ABI) Format {
	switch abi {
	case record.ABIV0:
		return V0
	case record.ABIV1:
		return V1
	case record.ABIThreadContext:
		return ThreadContext
	case record.ABIThreadContextNodeJS:
		return NodeJS
	case record.ABIGo:
		return Go
	}
	return ""
}

// Sizes of the variables.
var variableBytes = [record.NumABIs]uint64{
	record.ABIV0: 16, record.ABIV1: 8, record.ABIThreadContext: 8, record.ABIThreadContextNodeJS: 32,
}

// abis returns the formats of which the file has something. Of one that has a version and no
// variable, the version tells which is meant: that in the memory of the process.
func (f *file) abis(version uint32, known bool) (all []record.ABI) {
	labels := false
	for abi := record.ABIV0; abi < record.NumABIs; abi++ {
		if f.variables[abi].defined {
			all = append(all, abi)
			labels = labels || abi == record.ABIV0 || abi == record.ABIV1
		}
	}
	if f.version.defined && !labels && known {
		if version == 0 {
			return append(all, record.ABIV0)
		}
		return append(all, record.ABIV1)
	}
	return all
}

// symbols judges the symbols of a file.
func (f *file) symbols(t *tally, abi record.ABI) {
	format, s, name := formatOf(abi), f.variables[abi], abi.Symbol()
	state := "is exported by " + f.path
	switch {
	case !s.defined:
		state = "is not defined by " + f.path + ", which defines " + versionSymbol
	case !s.exported:
		state = "is only in .symtab of " + f.path + ", or hidden"
	}
	t.check(format.rule(ruleExported), s.exported, "%s %s", name, state)
	if s.defined {
		t.check(format.rule(ruleThreadLocal), s.threadLocal, "%s in %s is %s", name, f.path, kind(s.threadLocal))
		t.check(format.rule(ruleSize), s.size == variableBytes[abi], "%s in %s has %d bytes", name, f.path, s.size)
	}
	if !format.custom() {
		return
	}
	v := f.version
	state = "is exported by " + f.path
	switch {
	case !v.defined:
		state = "is not defined by " + f.path + ", or not with 4 bytes"
	case !v.exported:
		state = "is only in .symtab of " + f.path + ", or hidden"
	}
	t.check(format.rule(ruleVersionExported), v.exported, "%s %s", versionSymbol, state)
	if v.defined {
		t.check(format.rule(ruleVersionSize), v.size == 4, "%s in %s has %d bytes", versionSymbol, f.path, v.size)
	}
	f.name(t, format)
}

func kind(threadLocal bool) string {
	if threadLocal {
		return "thread-local"
	}
	return "one variable for all threads"
}

// custom tells whether a format is one of the custom labels ABIs.
func (f Format) custom() bool { return f == V0 || f == V1 }

// name judges the name of a library.
func (f *file) name(t *tally, format Format) {
	if f.executable {
		t.note(format.rule(ruleFileName), "the variable is in the executable")
		return
	}
	pattern := `libcustomlabels.*\.so`
	if format == V1 {
		pattern = `libcustomlabels.*\.so$|customlabels\.node$`
	}
	ok, err := regexp.MatchString(pattern, path.Base(f.path))
	t.check(format.rule(ruleFileName), err == nil && ok, "%s", f.path)
}

// versionValue judges the version that the process has.
func versionValue(t *tally, abi record.ABI, version uint32) {
	format := formatOf(abi)
	if !format.custom() {
		return
	}
	want := uint32(0)
	if abi == record.ABIV1 {
		want = 1
	}
	t.check(format.rule(ruleVersionValue), version == want, "%s is %d", versionSymbol, version)
}
