//go:build linux

package executable

import (
	"debug/elf"
	"iter"
	"math"
	"os"
	"sort"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Layout is how an ELF file is to be mapped. It outlives the open file.
type Layout struct {
	Machine elf.Machine
	Loads   []elffile.Segment
}

func layoutOf(f *elffile.File) Layout {
	l := Layout{Machine: f.Machine}
	for s := range f.Loads() {
		l.Loads = append(l.Loads, s)
	}
	return l
}

// Bias returns what was added to the file's virtual addresses, from an
// executable mapping of it. ok is false if no segment makes such a mapping, or
// if several do and disagree.
func (l *Layout) Bias(start, offset uint64) (bias uint64, ok bool) {
	return elffile.LoadBias(l.Machine, l.Loads, start, offset, true)
}

// biasAround is Bias by two mappings of the file that may not be executable. Small segments can share a page, so that
// one mapping alone does not always tell.
func (l *Layout) biasAround(a, b *procfs.Mapping) (bias uint64, ok bool) {
	of := func(m *procfs.Mapping) iter.Seq[uint64] {
		return elffile.LoadBiases(l.Machine, l.Loads, m.Start, m.Offset, m.Perms&procfs.PermExec != 0)
	}
	for one := range of(a) {
		for other := range of(b) {
			if one != other || ok && one == bias {
				continue
			}
			if ok {
				return 0, false
			}
			bias, ok = one, true
		}
	}
	return bias, ok
}

// code returns where the file has what is at the virtual addresses [start, limit), which are those of
// whole pages. ok is false if they are not all code.
func (l *Layout) code(start, limit uint64) (offset uint64, ok bool) {
	page := uint64(os.Getpagesize())
	for _, s := range l.Loads {
		if s.Flags&elf.PF_X != 0 && start >= s.Vaddr&-page && start < limit && limit <= (s.Vaddr+s.Filesz+page-1)&-page {
			return s.Offset + start - s.Vaddr, true
		}
	}
	return 0, false
}

// maxSharedBytes is how much of a file two segments may share where one ends and the next one
// begins: a page, of which some kernels of aarch64 have 64 KiB.
const maxSharedBytes = 64 << 10

// texts are the executable parts of the file, for rows whose first block is at a virtual
// address. Pages that two segments claim, and disagree about, are nobody's.
func (l *Layout) texts(base uint64) (texts []record.FileText) {
	page := uint64(os.Getpagesize())
	for _, s := range l.Loads {
		if s.Flags&elf.PF_X == 0 || s.Filesz == 0 {
			continue
		}
		end := s.Offset + s.Filesz
		first, limit := s.Offset/page, (end-1)/page+1
		if end < s.Offset || limit > math.MaxUint32 {
			continue
		}
		// A file may say that its segments share any number of pages.
		searched := min(limit, first+1+maxSharedBytes/page)
		for first < searched {
			if _, ok := l.Bias(0, first*page); ok {
				texts = append(texts, record.FileText{FirstPage: uint32(first), LimitPage: uint32(limit), Text: int64(base - (s.Vaddr - s.Offset))})
				break
			}
			first++
		}
	}
	return texts
}

// Complete reports whether all segments of a file that is mapped with a bias are mapped where they
// belong. The loader first maps a library as a whole from its start, and then
// puts the later segments in place: until then, the addresses of its slots show
// other bytes of the file, which must not be taken for relocated values.
func (l *Layout) Complete(bias, dev, inode uint64, mappings []procfs.Mapping) bool {
	for _, s := range l.Loads {
		if s.Filesz == 0 {
			continue
		}
		for _, at := range [2]uint64{0, s.Filesz - 1} {
			addr := bias + s.Vaddr + at
			m := findMapping(mappings, addr)
			if m == nil || m.Dev != dev || m.Inode != inode || addr-m.Start+m.Offset != s.Offset+at {
				return false
			}
		}
	}
	return true
}

// findMapping returns the mapping that holds an address, or nil.
func findMapping(mappings []procfs.Mapping, addr uint64) *procfs.Mapping {
	n := sort.Search(len(mappings), func(n int) bool { return mappings[n].Limit > addr })
	if n == len(mappings) || addr < mappings[n].Start {
		return nil
	}
	return &mappings[n]
}
