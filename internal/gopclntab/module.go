package gopclntab

import (
	"debug/elf"
	"encoding/binary"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

// Words of runtime.moduledata. Go 1.27 has added three before gofunc, Go 1.20 two
// before those; what follows gofunc is the end of the table since Go 1.26.
const (
	wordHeader    = 0
	wordNames     = 1
	wordFunctions = 17 // len(ftab)
	wordText      = 22
	wordGofunc118 = 38
	wordGofunc120 = 40
	wordGofunc127 = 43
	moduleWords   = 45

	moduleSection = ".go.module" // since Go 1.26
	// maxDataBytes of a file's data are searched for moduledata.
	maxDataBytes = 64 << 20
)

// module is what of runtime.moduledata is needed; 0 for what is not known.
type module struct{ text, gofunc uint64 }

// words are the first words of a moduledata, with addresses as linked.
type words [moduleWords]uint64

// findModule finds the moduledata of the table at a virtual address. Not finding it
// is no error.
func findModule(f *elffile.File, pclntab uint64, h header) (module, error) {
	var w words
	found := false
	if s, ok, err := f.Section(moduleSection); err == nil && ok {
		w, found = readModule(f, s.Addr, pclntab, h)
	}
	if !found {
		w, found = searchModule(f, pclntab, h)
	}
	if !found {
		var err error
		if w, found, err = relocatedModule(f, pclntab, h); err != nil || !found {
			return module{}, err
		}
	}
	return module{text: w[wordText], gofunc: w.gofunc(pclntab, h)}, nil
}

// gofunc returns the address that offsets of function data count from.
func (w *words) gofunc(pclntab uint64, h header) uint64 {
	if !h.current {
		return w[wordGofunc118]
	}
	if end := w[wordGofunc127+1]; end > pclntab+h.code && w[wordGofunc127] > pclntab && w[wordGofunc127] <= end {
		return w[wordGofunc127]
	}
	return w[wordGofunc120]
}

// describes reports whether these are the words of the table's moduledata.
func (w *words) describes(pclntab uint64, h header) bool {
	return w[wordHeader] == pclntab && w[wordNames] == pclntab+h.names && w[wordFunctions] == h.functions+1
}

// readModule reads a moduledata whose addresses are in place.
func readModule(f *elffile.File, vaddr, pclntab uint64, h header) (w words, ok bool) {
	var b [8 * moduleWords]byte
	if f.ReadVaddr(b[:], vaddr) != nil {
		return words{}, false
	}
	for i := range w {
		w[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	ok = w.describes(pclntab, h)
	return w, ok
}

// searchModule looks through the file's data for the address of the table.
func searchModule(f *elffile.File, pclntab uint64, h header) (words, bool) {
	buf := make([]byte, min(searchBytes, f.Size()))
	left := uint64(maxDataBytes)
	for s := range f.Loads() {
		if s.Flags&elf.PF_W == 0 {
			continue
		}
		skip := -s.Vaddr % 8
		for off := skip; off < s.Filesz && left > 0; off += searchBytes {
			n := min(uint64(len(buf)), s.Filesz-off, left)
			left -= n
			b := buf[:n]
			if f.ReadVaddr(b, s.Vaddr+off) != nil {
				break
			}
			for i := 0; i+8 <= len(b); i += 8 {
				if binary.LittleEndian.Uint64(b[i:]) != pclntab {
					continue
				}
				if w, ok := readModule(f, s.Vaddr+off+uint64(i), pclntab, h); ok {
					return w, true
				}
			}
		}
	}
	return words{}, false
}

// relocatedModule finds a moduledata of which the file has only relocations: of
// position-independent programs some linkers leave the words themselves zero.
func relocatedModule(f *elffile.File, pclntab uint64, h header) (w words, ok bool, err error) {
	const most = 16
	var places []uint64 // where the address of the table goes
	err = f.RelativeRelocations(func(vaddr, value uint64) bool {
		if value == pclntab {
			places = append(places, vaddr)
		}
		return len(places) < most
	})
	if err != nil || len(places) == 0 {
		return words{}, false, err
	}
	candidates := make([]words, len(places))
	for i, p := range places {
		for j := range candidates[i] {
			candidates[i][j], _ = f.ReadWord(p + 8*uint64(j))
		}
	}
	err = f.RelativeRelocations(func(vaddr, value uint64) bool {
		for i, p := range places {
			if vaddr-p < 8*moduleWords && (vaddr-p)%8 == 0 {
				candidates[i][(vaddr-p)/8] = value
			}
		}
		return true
	})
	if err != nil {
		return words{}, false, err
	}
	for i := range candidates {
		if candidates[i].describes(pclntab, h) {
			return candidates[i], true, nil
		}
	}
	return words{}, false, nil
}
