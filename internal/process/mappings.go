//go:build linux

package process

import (
	"errors"
	"os"
	"sort"

	"github.com/customlabels/otelcol-customlabels/internal/processctx"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

const (
	// maxExecMappings of one process are kept; of these, half can be anonymous:
	// code that a program generates must not crowd out its libraries.
	maxExecMappings      = 2048
	maxAnonymousMappings = maxExecMappings / 2
	// keptScratch is the length of the buffer that a worker keeps between processes.
	keptScratch = 8 << 10
	// vsyscallPath names what is no mapping of the process.
	vsyscallPath = "[vsyscall]"
)

// findMapping returns the mapping that holds an address, or nil.
func findMapping(mappings []procfs.Mapping, addr uint64) *procfs.Mapping {
	n := sort.Search(len(mappings), func(n int) bool { return mappings[n].Limit > addr })
	if n == len(mappings) || addr < mappings[n].Start {
		return nil
	}
	return &mappings[n]
}

// scratch holds the mappings of the process that a worker is reading.
type scratch struct {
	files []procfs.Mapping // all that show files
	exec  []procfs.Mapping // executable ones
	cut   bool
	code  uint64 // bytes that are executable and not writable
	// contexts are the addresses of what may be a process context.
	contexts []uint64
}

// read reads the mappings of a process.
func (s *scratch) read(fs procfs.FS, pid int) error {
	if cap(s.files) > keptScratch {
		s.files = nil
	}
	s.files, s.exec, s.contexts, s.cut, s.code = s.files[:0], s.exec[:0], s.contexts[:0], false, 0
	anonymous := 0
	for m, err := range fs.Mappings(pid) {
		switch {
		case errors.Is(err, procfs.ErrTooManyMappings):
			s.cut, s.code = true, 0
			return nil
		case err != nil:
			return err
		}
		if m.Inode != 0 {
			s.files = append(s.files, m)
		}
		if m.Perms&procfs.PermExec == 0 {
			if processctx.IsMapping(&m) && len(s.contexts) < maxContextMappings {
				s.contexts = append(s.contexts, m.Start)
			}
			continue
		}
		if m.Perms&procfs.PermWrite == 0 && m.Path != vsyscallPath {
			s.code += m.Limit - m.Start
		}
		if m.Inode == 0 {
			if s.extend(m) {
				continue
			}
			anonymous++
		}
		if len(s.exec) == maxExecMappings || m.Inode == 0 && anonymous > maxAnonymousMappings {
			s.cut = true
			continue
		}
		s.exec = append(s.exec, m)
	}
	return nil
}

// execPages is how many pages the process has executable and not writable, as the kernel
// counts them (exec_vm of struct mm_struct); 0 if not all mappings were read.
func (s *scratch) execPages() uint64 { return s.code / uint64(os.Getpagesize()) }

// extend joins anonymous mappings that follow each other.
func (s *scratch) extend(m procfs.Mapping) bool {
	if len(s.exec) == 0 {
		return false
	}
	last := &s.exec[len(s.exec)-1]
	if last.Inode != 0 || last.Limit != m.Start || last.Path != m.Path {
		return false
	}
	last.Limit = m.Limit
	return true
}

// execMappings turns what was read into mappings with files. It keeps those that
// were known before, and reports whether there is any change.
func (t *Table) execMappings(pid int, by owner, s *scratch, before *Info) (mappings []ExecMapping, changed bool) {
	changed = len(s.exec) != len(before.Mappings)
	mappings = make([]ExecMapping, 0, len(s.exec))
	for i := range s.exec {
		raw := &s.exec[i]
		if known := before.Mapping(raw.Start); known != nil && known.shows(raw) {
			mappings = append(mappings, *known)
			continue
		}
		changed = true
		mappings = append(mappings, t.execMapping(pid, by, raw))
	}
	return mappings, changed
}

// shows reports whether a mapping is the one that was read again.
func (m *ExecMapping) shows(raw *procfs.Mapping) bool {
	return m.Start == raw.Start && m.Limit == raw.Limit && m.Offset == raw.Offset &&
		m.dev == raw.Dev && m.inode == raw.Inode
}

func (t *Table) execMapping(pid int, by owner, raw *procfs.Mapping) ExecMapping {
	m := ExecMapping{
		Start: raw.Start, Limit: raw.Limit, Offset: raw.Offset,
		Path: validUTF8(raw.Path), dev: raw.Dev, inode: raw.Inode,
	}
	f := t.vdso.of(raw)
	switch {
	case f != nil:
	case raw.Inode == 0:
		return m
	default:
		var err error
		if f, err = t.files.of(pid, by, *raw); err != nil {
			t.counts.fileErrors.Add(1)
			return m
		}
	}
	if f.unreadable() && !f.broken.Swap(true) {
		t.counts.fileErrors.Add(1)
	}
	m.File = f
	if m.Path == f.path {
		m.Path = f.path // the same bytes for all processes
	}
	m.bias, m.biased = f.facts.layout.bias(raw.Start, raw.Offset)
	return m
}

// imagesOf returns the places of files that may have label sources.
func imagesOf(mappings []ExecMapping) []image {
	var images []image
	for i := range mappings {
		m := &mappings[i]
		if !m.biased || len(m.File.facts.plans) == 0 {
			continue
		}
		im := image{m.File, m.bias, m.dev, m.inode}
		if len(images) == 0 || images[len(images)-1] != im {
			images = append(images, im)
		}
	}
	return images
}
