// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	target "github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

const (
	// maxFilesExamined bounds the files that are looked at for hints.
	maxFilesExamined = 512
	versionSymbol    = "custom_labels_abi_version"
)

// fileReport is a file that can have thread-local variables, and what keeps it
// from being a label source.
type fileReport struct {
	Path     string   `json:"path"`
	TLSBytes uint64   `json:"tls_bytes"`
	Notes    []string `json:"notes"`

	library bool // the C library or its loader
	// remedies are what to do about what is noted.
	remedies []string
}

// visitFiles opens the files that a process runs, each once. It returns those
// that cannot be read.
func visitFiles(info *target.Info, visit func(m *executable.Mapping, e *elffile.File, file *executable.Contents)) (unread []string) {
	seen := map[*executable.File]bool{}
	paths := map[string]bool{}
	for i := range info.Mappings {
		m := &info.Mappings[i]
		switch {
		case m.File == nil && strings.HasPrefix(m.Path, "/") && !paths[m.Path]:
			paths[m.Path] = true
			unread = append(unread, m.Path)
		case m.File == nil || seen[m.File] || len(seen) == maxFilesExamined:
		default:
			seen[m.File] = true
			if !visitFile(m, visit) {
				unread = append(unread, m.Path)
			}
		}
	}
	return unread
}

func visitFile(m *executable.Mapping, visit func(m *executable.Mapping, e *elffile.File, file *executable.Contents)) (readable bool) {
	file, size, err := m.File.Open()
	if err != nil {
		return false
	}
	defer file.Close()
	if e, err := elffile.New(file, size); err == nil {
		visit(m, e, file)
	}
	return true // and no ELF file perhaps: that maps no variables
}

// explain says why a process has no label source that can be read.
func (r *processReport) explain(info *target.Info) {
	program := info.Path
	unread := visitFiles(info, func(m *executable.Mapping, e *elffile.File, _ *executable.Contents) {
		if f := newFileReport(m.Path, e, m.Path == program); f.TLSBytes > 0 || len(f.Notes) > 0 {
			r.Files = append(r.Files, f)
		}
	})
	own := 0
	for i := range r.Files {
		if f := &r.Files[i]; !f.library && f.TLSBytes > 0 {
			own++
		}
	}
	if own == 0 && len(unread) == 0 && len(r.remedies()) == 0 {
		r.Hints = append(r.Hints, "No file but the C library has thread-local variables: what publishes labels is not linked in, or not loaded.")
	}
	if len(unread) > 0 {
		r.Hints = append(r.Hints, "Not readable, so not looked at: "+strings.Join(unread[:min(len(unread), 5)], ", ")+more(len(unread)-5)+".")
	}
}

// newFileReport looks at one file. Only what holds for it is noted.
func newFileReport(name string, e *elffile.File, program bool) fileReport {
	f := fileReport{Path: name, Notes: []string{}, library: isCLibrary(name)}
	if tls, ok := e.TLS(); ok {
		f.TLSBytes = tls.Memsz
	}
	defined := false
	for abi := record.ABIV0; abi < record.NumABIs; abi++ {
		if abi.Symbol() == "" {
			continue
		}
		sym, ok, err := e.DynamicSymbol(abi.Symbol())
		if err == nil && !ok {
			_, hidden, err := e.TLSSymbol(abi.Symbol())
			defined = defined || hidden || errors.Is(err, elffile.ErrAmbiguous) // likewise
		}
		switch {
		case err != nil:
			f.note("its dynamic symbols cannot be read: " + err.Error())
			return f
		case ok && sym.Type != elf.STT_TLS:
			f.note("defines " + abi.Symbol() + ", but not as a thread-local variable (__thread, thread_local)")
			f.remedy("Declare " + abi.Symbol() + " with __thread: each thread has labels of its own.")
		case ok:
			defined = true // a label source, whose state says more
		}
	}
	if _, ok, err := e.DynamicSymbol(versionSymbol); err == nil && ok && !defined {
		f.note("defines " + versionSymbol + ", but exports no variable that goes with it")
		f.remedy("Export the variable by its plain name, beside " + versionSymbol + ": extern \"C\" in C++, in no namespace, and with visibility \"default\"; an executable is linked with -Wl,--export-dynamic-symbol= for both, or with -rdynamic.")
		return f
	}
	if id, err := e.GoBuildID(); err == nil && id != "" && !e.IsExecutable() {
		f.note("a library written in Go: the pprof labels of its goroutines are not supported yet")
	}
	if f.TLSBytes > 0 && !defined && !f.library {
		f.noteStripped(e, program)
	}
	return f
}

// noteStripped says whether a variable could be there unseen.
func (f *fileReport) noteStripped(e *elffile.File, program bool) {
	_, dynamic := e.Dynamic()
	switch stripped, err := e.Stripped(); {
	case err != nil:
		f.note("its symbol table cannot be read: " + err.Error())
	case !stripped:
		f.note("defines none of the symbols, hidden ones included")
	case !dynamic:
		f.note("static and stripped: a variable in it cannot be found; keep .symtab")
		f.remedy("Keep .symtab in the program, which is static: no -s, and strip --strip-debug.")
	case program:
		f.note("stripped, and exports none of the symbols: link with -rdynamic or --export-dynamic-symbol, or keep .symtab")
	default:
		f.note("stripped, and exports none of the symbols: a hidden variable (-fvisibility=hidden) cannot be found")
	}
}

func (f *fileReport) remedy(text string) { f.remedies = append(f.remedies, text) }

// remedies are those for all files, each once.
func (r *processReport) remedies() (all []string) {
	for i := range r.Files {
		for _, text := range r.Files[i].remedies {
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

func (f *fileReport) note(text string) { f.Notes = append(f.Notes, text) }
