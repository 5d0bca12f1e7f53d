//go:build linux

package process

import (
	"debug/elf"
	"math"
	"os"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// layout is how an ELF file is to be mapped. It outlives the open file.
type layout struct {
	machine elf.Machine
	loads   []elffile.Segment
}

func layoutOf(f *elffile.File) layout {
	l := layout{machine: f.Machine}
	for s := range f.Loads() {
		l.loads = append(l.loads, s)
	}
	return l
}

// bias returns what was added to the file's virtual addresses, from an
// executable mapping of it. ok is false if no segment makes such a mapping, or
// if several do and disagree.
func (l *layout) bias(start, offset uint64) (bias uint64, ok bool) {
	return elffile.LoadBias(l.machine, l.loads, start, offset, true)
}

// texts are the executable parts of the file, for rows whose first block is at a virtual
// address. Pages that two segments claim, and disagree about, are nobody's.
func (l *layout) texts(base uint64) (texts []record.FileText) {
	page := uint64(os.Getpagesize())
	for _, s := range l.loads {
		if s.Flags&elf.PF_X == 0 || s.Filesz == 0 {
			continue
		}
		first, limit := s.Offset/page, (s.Offset+s.Filesz+page-1)/page
		for first < limit {
			if _, ok := l.bias(0, first*page); ok {
				break
			}
			first++
		}
		if limit > math.MaxUint32 || first >= limit {
			continue
		}
		texts = append(texts, record.FileText{FirstPage: uint32(first), LimitPage: uint32(limit), Text: int64(base - (s.Vaddr - s.Offset))})
	}
	return texts
}

// complete reports whether all segments of an image are mapped where they
// belong. The loader first maps a library as a whole from its start, and then
// puts the later segments in place: until then, the addresses of its slots show
// other bytes of the file, which must not be taken for relocated values.
func (l *layout) complete(bias, dev, inode uint64, mappings []procfs.Mapping) bool {
	for _, s := range l.loads {
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
