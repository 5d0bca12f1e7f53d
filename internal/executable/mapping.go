//go:build linux

package executable

import "github.com/customlabels/otelcol-customlabels/internal/procfs"

// Mapping is an executable mapping of a process: [Start, Limit) shows File
// from Offset on.
type Mapping struct {
	Start, Limit uint64
	Offset       uint64
	File         *File  // nil for anonymous memory and files that cannot be read
	Path         string // as in /proc/PID/maps; valid UTF-8

	Dev, Inode uint64
	Bias       uint64 // what was added to the file's virtual addresses; valid if Biased
	Biased     bool

	// Since is the epoch of the process in which it came; process.Info has the meaning.
	Since uint32
}

// Vaddr converts an address in the mapping to a virtual address of the ELF
// file, the one that its symbols use. ok is false if the file is no ELF file or
// maps nothing there.
func (m *Mapping) Vaddr(addr uint64) (vaddr uint64, ok bool) {
	return addr - m.Bias, m.Biased
}

// Shows reports whether a mapping is the one that was read again.
func (m *Mapping) Shows(raw *procfs.Mapping) bool {
	return m.Start == raw.Start && m.Limit == raw.Limit && m.Offset == raw.Offset &&
		m.Dev == raw.Dev && m.Inode == raw.Inode
}

// Map returns what a mapping of an owner's process shows. err says that there is no File
// because it cannot be read.
func (c *Cache) Map(pid int, by Owner, raw *procfs.Mapping) (m Mapping, err error) {
	m = Mapping{
		Start: raw.Start, Limit: raw.Limit, Offset: raw.Offset,
		Path: validUTF8(raw.Path), Dev: raw.Dev, Inode: raw.Inode,
	}
	f := c.vdso.of(raw)
	switch {
	case f != nil:
	case raw.Inode == 0:
		return m, nil
	default:
		if f, err = c.of(pid, by, *raw); err != nil {
			return m, err
		}
	}
	m.File = f
	if m.Path == f.path {
		m.Path = f.path // the same bytes for all processes
	}
	m.Bias, m.Biased = f.facts.Layout.Bias(raw.Start, raw.Offset)
	return m, nil
}
