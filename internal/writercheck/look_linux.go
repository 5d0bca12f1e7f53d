//go:build linux && (amd64 || arm64)

package writercheck

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

const (
	maxFiles = 512
	// maxUnnamed bounds the mappings in which a process context without its name is looked for,
	// and maxContextBytes their size.
	maxUnnamed      = 4096
	maxContextBytes = 1 << 20
	// maxContexts bounds those that are told of.
	maxContexts = 16
	// maxEnvironmentBytes bounds what is read for LD_PRELOAD.
	maxEnvironmentBytes = 128 << 10
	// maxPreloadBytes bounds what is read of /etc/ld.so.preload.
	maxPreloadBytes = 64 << 10
)

// look takes over what is known of a process now.
func (w *watch) look(info *process.Info) {
	w.info = info
	w.lookAtFiles(info)
	w.sources = w.sources[:0]
	for i := range info.Sources {
		s := &info.Sources[i]
		w.judgeSource(s)
		if s.State == labelsource.Active {
			w.sources = append(w.sources, s.Source())
		}
	}
	w.lookForContexts()
}

// FormatsOf are those that a look has found something of: a source, which may not be one that can be read, or a
// process context. An executable that is only mapped, as debuggers do, is nothing of the process.
func FormatsOf(info *process.Info) (formats []Format) {
	if info.Context != nil || info.ContextErr != "" {
		formats = append(formats, ProcessContext)
	}
	for i := range info.Sources {
		if s := &info.Sources[i]; s.State != labelsource.NotProgram && !slices.Contains(formats, formatOf(s.ABI)) {
			formats = append(formats, formatOf(s.ABI))
		}
	}
	return formats
}

func (w *watch) publishes(f Format) {
	if !slices.Contains(w.formats, f) {
		w.formats = append(w.formats, f)
	}
}

// lookAtFiles judges the files that a process maps.
func (w *watch) lookAtFiles(info *process.Info) {
	var all []*file
	var program *file
	visited := map[*file]*executable.Mapping{}
	for i := range info.Mappings {
		m := &info.Mappings[i]
		f := w.file(m)
		if f == nil || visited[f] != nil {
			continue
		}
		all = append(all, f)
		visited[f] = m
		if m.Path == info.Path {
			program = f
		}
	}
	program = ofLoader(program, all)
	atStart := newInitial(program, all, w.preloaded())
	for _, f := range all {
		if !f.publishes() || f.executable && f != program {
			continue
		}
		version, known := w.versionAt(visited[f], f)
		for _, abi := range f.abis(version, known) {
			if duplicate(info, f.path, abi) {
				continue
			}
			w.publishes(formatOf(abi))
			f.symbols(w.t, abi)
			atStart.loaded(w.t, f, abi)
			if known {
				versionValue(w.t, abi, version)
			}
		}
	}
}

// preloaded are the names of libraries that the loader loads besides those that the program asks for.
func (w *watch) preloaded() (names []string) {
	if environment, _, err := w.fs.Environment(w.pid, maxEnvironmentBytes, "LD_PRELOAD"); err == nil {
		names = preloads(environment["LD_PRELOAD"])
	}
	f, _, err := w.fs.OpenPath(w.pid, procfs.ProcessRoot, "/etc/ld.so.preload", 0)
	if err != nil {
		return names
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPreloadBytes))
	if err != nil {
		return names
	}
	return append(names, preloadsOfFile(string(text))...)
}

// ofLoader returns the program that a dynamic loader runs, if it is the loader that was started, and else the program
// itself. The loader names no loader and is no program.
func ofLoader(program *file, all []*file) *file {
	if program == nil || program.executable || program.interp != "" {
		return program
	}
	if i := slices.IndexFunc(all, func(f *file) bool { return f.executable && f.interp != "" }); i >= 0 {
		return all[i]
	}
	return program
}

// duplicate reports whether a file's variable is another one's, which the process uses instead.
func duplicate(info *process.Info, path string, abi record.ABI) bool {
	return slices.ContainsFunc(info.Sources, func(s labelsource.Status) bool {
		return s.Path == path && s.ABI == abi && s.State == labelsource.Duplicate
	})
}

// file reads a file once. nil: it is no ELF file, or cannot be read.
func (w *watch) file(m *executable.Mapping) *file {
	if m.File == nil || !m.Biased {
		return nil
	}
	id := m.File.ID()
	f, known := w.files[id]
	if known || len(w.files) == maxFiles {
		return f
	}
	if opened, size, err := m.File.Open(); err == nil {
		if e, err := elffile.New(opened, size); err == nil {
			f = examine(m.Path, e)
		}
		opened.Close()
	}
	w.files[id] = f
	return f
}

// versionAt reads custom_labels_abi_version where the process has it.
func (w *watch) versionAt(m *executable.Mapping, f *file) (version uint32, known bool) {
	var b [4]byte
	if !f.version.defined || w.mem.ReadAt(b[:], m.Bias+f.version.value) != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint32(b[:]), true
}

// judgeSource judges the way to a variable.
func (w *watch) judgeSource(s *labelsource.Status) {
	f := formatOf(s.ABI)
	if s.State == labelsource.Active {
		w.publishes(f) // also if its file is not among those that are judged
	}
	found := s.State != labelsource.NoRelocation && s.State != labelsource.UnsupportedModel &&
		s.State != labelsource.Undefined && s.State != labelsource.Unreadable
	switch {
	case s.State == labelsource.NotProgram || s.State == labelsource.NotRelocated || s.State == labelsource.OverLimit || s.State == labelsource.Duplicate:
		return // says nothing of the writer
	case f == Go:
		w.publishes(Go)
		w.t.check(f.rule(ruleFound), s.State == labelsource.Active, "%s %s", s.Go.Version, s.Err)
		return
	case f == NodeJS:
		w.t.check(f.rule(ruleModel), found && s.State != labelsource.UnsupportedVersion, "%s in %s: %s %s", s.Model, s.Path, s.State, s.Err)
		return
	case s.State == labelsource.UnsupportedVersion || s.State == labelsource.UnsupportedSchema || s.Model == "":
		return // judged by themselves
	}
	id := f.rule(ruleModel)
	switch model := s.Model; {
	case !found:
		w.t.check(id, false, "%s in %s: %s", model, s.Path, s.Err)
	case model == tlsresolve.LocalExec.String():
		w.t.check(id, true, "%s in %s", model, s.Path)
	case f.custom():
		w.t.check(id, model == tlsresolve.Descriptor.String(), "%s in %s", model, s.Path)
	default:
		w.t.check(id, model != tlsresolve.ModuleOnly.String(), "%s in %s", relocationText(model), s.Path)
		if model != tlsresolve.InitialExec.String() && model != tlsresolve.ModuleOnly.String() {
			w.t.check(f.rule(ruleDescriptor), model == tlsresolve.Descriptor.String(), "%s in %s", model, s.Path)
		}
	}
}

func relocationText(model string) string {
	if model == tlsresolve.ModuleOnly.String() {
		return "no relocation for the variable"
	}
	return model
}

// lookForContexts finds the process contexts of a process.
func (w *watch) lookForContexts() {
	const f = ProcessContext
	var named, unnamed []procfs.Mapping
	for m, err := range w.fs.Mappings(w.pid) {
		if err != nil {
			break
		}
		switch {
		case strings.Contains(m.Path, "OTEL_CTX") && (contextName(m.Path)):
			named = append(named, m)
		case m.Perms&procfs.PermRead != 0 && m.Perms&procfs.PermExec == 0 && m.Limit-m.Start <= maxContextBytes && len(unnamed) < maxUnnamed &&
			(m.Inode == 0 || strings.HasPrefix(m.Path, "/memfd:") || strings.HasPrefix(m.Path, "[anon")):
			unnamed = append(unnamed, m)
		}
	}
	named = named[:min(len(named), maxContexts)]
	w.contexts = w.contexts[:0]
	for i := range named {
		m := &named[i]
		w.publishes(f)
		w.contexts = append(w.contexts, m.Start)
		w.t.check(f.rule("mapping-name"), true, "%s", m.Path)
		w.t.check(f.rule("permissions"), m.Perms&procfs.PermRead != 0 && m.Perms&procfs.PermExec == 0, "%s", permsText(m.Perms))
		w.judgeNaming(m)
		w.judgeFork(m)
	}
	if len(named) > 0 {
		w.t.check(f.rule("single"), len(named) == 1, "%d mappings", len(named))
		return
	}
	var b [len(contextSignature)]byte
	for i := range unnamed {
		if m := &unnamed[i]; w.mem.ReadAt(b[:], m.Start) == nil && string(b[:]) == contextSignature {
			w.publishes(f)
			w.t.check(f.rule("mapping-name"), false, "%#x %q", m.Start, m.Path)
			w.contexts = append(w.contexts, m.Start)
			w.judgeFork(m)
			return
		}
	}
}

// contextName reports whether a mapping has the name of a process context, whatever else it has.
func contextName(path string) bool {
	m := procfs.Mapping{Path: path, Perms: procfs.PermRead}
	return processctx.IsMapping(&m)
}

func permsText(p procfs.Perms) string {
	text := []byte("---p")
	for i, c := range []byte("rwx") {
		if p&(1<<i) != 0 {
			text[i] = c
		}
	}
	if p&procfs.PermShared != 0 {
		text[3] = 's'
	}
	return string(text)
}

// judgeNaming judges whether a mapping has been named, where the kernel does that.
func (w *watch) judgeNaming(m *procfs.Mapping) {
	id := ProcessContext.rule("mapping-named")
	if strings.HasPrefix(m.Path, "[anon") {
		w.t.check(id, true, "%s", m.Path)
		return
	}
	if named, err := w.kernelNames(); !named {
		w.t.note(id, fmt.Sprintf("this kernel names no such mappings: %v", said(err)))
		return
	}
	w.t.check(id, false, "%s", m.Path)
}

// judgeFork judges whether children inherit a mapping.
func (w *watch) judgeFork(m *procfs.Mapping) {
	id := ProcessContext.rule("dont-fork")
	flags, ok, err := w.fs.VMFlags(w.pid, m.Start)
	if err != nil || !ok {
		w.t.note(id, "the kernel does not show the flags of mappings")
		return
	}
	w.t.check(id, slices.Contains(flags, procfs.DontFork), "flags %v", flags)
}

// kernelNames tries whether this kernel names mappings of a memfd.
func (w *watch) kernelNames() (bool, error) {
	fd, err := unix.MemfdCreate("check", unix.MFD_CLOEXEC)
	if err != nil {
		return false, err
	}
	file := os.NewFile(uintptr(fd), "check")
	defer file.Close()
	size := os.Getpagesize()
	if err := file.Truncate(int64(size)); err != nil {
		return false, err
	}
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Munmap(b) }()
	name := []byte("check\x00")
	err = unix.Prctl(unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, uintptr(unsafe.Pointer(&b[0])), uintptr(size), uintptr(unsafe.Pointer(&name[0])))
	return err == nil, err
}
