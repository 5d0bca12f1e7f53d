//go:build linux

package executable

import (
	"iter"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// Mapping is an executable mapping of a process: [Start, Limit) shows File
// from Offset on, or what was copied from there.
type Mapping struct {
	Start, Limit uint64
	Offset       uint64
	File         *File  // nil for anonymous memory and files that cannot be read
	Path         string // as in /proc/PID/maps; valid UTF-8

	Dev, Inode uint64
	Bias       uint64 // what was added to the file's virtual addresses; valid if Biased
	Biased     bool
	// Moved says that it is memory without a file, to which the process has copied its code: to have
	// it on huge pages, for instance.
	Moved bool

	// Since is the epoch of the process in which it came; process.Info has the meaning.
	Since uint32
}

// Vaddr converts an address in the mapping to a virtual address of the ELF
// file, the one that its symbols use. ok is false if the file is no ELF file or
// maps nothing there.
func (m *Mapping) Vaddr(addr uint64) (vaddr uint64, ok bool) {
	return addr - m.Bias, m.Biased
}

// share has a path that the file was first seen at be the same bytes for all processes.
func (m *Mapping) share() {
	if m.Path == m.File.path {
		m.Path = m.File.path
	}
}

// Shows reports whether a mapping is the one that was read again.
func (m *Mapping) Shows(raw *procfs.Mapping) bool {
	if m.Start != raw.Start || m.Limit != raw.Limit {
		return false
	}
	if m.Moved {
		return raw.Inode == 0
	}
	return m.Offset == raw.Offset && m.Dev == raw.Dev && m.Inode == raw.Inode
}

// AskedFor is who asks for the file of a mapping that a process of an owner has.
func (m *Mapping) AskedFor(pid int, owner Owner) Asker {
	return Asker{owner, pid, procfs.Mapping{Start: m.Start, Limit: m.Limit, Offset: m.Offset, Dev: m.Dev, Inode: m.Inode, Path: m.Path}}
}

// Around are mappings of one file, of which nothing else that shows a file is between.
type Around struct{ Below, Above procfs.Mapping }

// Unread is a mapping of which nothing is known but where it is.
func Unread(raw *procfs.Mapping) Mapping {
	return Mapping{
		Start: raw.Start, Limit: raw.Limit, Offset: raw.Offset,
		Path: validUTF8(raw.Path), Dev: raw.Dev, Inode: raw.Inode,
	}
}

// Map returns what a mapping of an owner's process shows. One without a file, and what is around it,
// if that is one file, may be code that was moved. err says that there is no File because it cannot
// be read.
func (c *Cache) Map(pid int, by Owner, raw *procfs.Mapping, around *Around) (m Mapping, err error) {
	m = Unread(raw)
	f := c.vdso.of(raw)
	switch {
	case f != nil:
	case raw.Inode == 0 && around == nil:
		return m, nil
	case raw.Inode == 0:
		err = c.moved(pid, by, &m, around)
		return m, err
	default:
		if f, err = c.of(pid, by, *raw); err != nil {
			return m, err
		}
	}
	m.File = f
	m.share()
	m.Bias, m.Biased = f.facts.Layout.Bias(raw.Start, raw.Offset)
	return m, nil
}

// moved finds the file that a mapping is copied from: the one around it.
func (c *Cache) moved(pid int, by Owner, m *Mapping, around *Around) error {
	f, err := c.of(pid, by, around.Below)
	if err == nil {
		m.copies(f, around)
	}
	return err
}

// copies makes a mapping one of a file that is around it, if all of it lies where the file has code.
func (m *Mapping) copies(f *File, around *Around) {
	layout := &f.facts.Layout
	bias, ok := layout.biasAround(&around.Below, &around.Above)
	if !ok {
		return
	}
	offset, ok := layout.code(m.Start-bias, m.Limit-bias)
	if !ok {
		return
	}
	m.Path = validUTF8(around.Below.Path) // as this process has it: others may have seen it elsewhere
	m.Offset, m.File, m.Dev, m.Inode = offset, f, around.Below.Dev, around.Below.Inode
	m.share()
	m.Bias, m.Biased, m.Moved = bias, true, true
}

// Paths are those of mappings.
func Paths(mappings []Mapping) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range mappings {
			if !yield(mappings[i].Path) {
				return
			}
		}
	}
}
