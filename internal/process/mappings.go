//go:build linux

package process

import (
	"errors"
	"os"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
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
	// damagedNumber is that of executable.File.FirstTime for files whose label sources cannot
	// be read; reader.explain takes those of the ABIs.
	damagedNumber = 31
	// runtimeNumber is that for files with a language runtime whose functions are not known.
	runtimeNumber = 30
	// severalNumber is that for files with the language runtime of a process that has others, too.
	severalNumber = 29
)

// scratch holds the mappings of the process that a worker is reading.
type scratch struct {
	lines procfs.MappingReader
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
	for m, err := range s.lines.Mappings(fs, pid) {
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
func (r *reader) execMappings(l *look, s *scratch) (mappings []executable.Mapping, changed bool) {
	changed = len(s.exec) != len(l.info.Mappings)
	mappings = make([]executable.Mapping, 0, len(s.exec))
	for i := range s.exec {
		raw := &s.exec[i]
		if known := l.info.Mapping(raw.Start); known != nil && known.Shows(raw) {
			mappings = append(mappings, *known)
			continue
		}
		changed = true
		m, err := r.files.Map(l.tid, l.owner, raw)
		// The label sources of a file cannot be read: that counts once, in however many processes.
		if err != nil || m.File != nil && labelsource.Damaged(m.File) && m.File.FirstTime(damagedNumber) {
			r.counts.fileErrors.Add(1)
		}
		mappings = append(mappings, m)
	}
	return mappings, changed
}
