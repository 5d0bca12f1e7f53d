//go:build linux

package process

import (
	"debug/elf"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
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
