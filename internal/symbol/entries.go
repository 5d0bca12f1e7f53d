package symbol

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// entryBytes is what an entry takes beside its name.
const entryBytes = 16

// entry is a function in a compact form.
type entry struct {
	start uint64
	size  uint32 // 0: not known
	name  uint32 // offset in the names, which end with NUL
}

// entries are functions sorted by their start, without duplicates.
type entries struct {
	list  []entry
	names []byte
}

// add appends a function as long as all take at most maxBytes.
func (e *entries) add(start, size uint64, name []byte, maxBytes int) bool {
	if e.bytes()+entryBytes+len(name)+1 > min(maxBytes, 1<<32-1) { // offsets are 32 bits
		return false
	}
	e.list = append(e.list, entry{start, uint32(min(size, 1<<32-1)), uint32(len(e.names))})
	e.names = append(append(e.names, name...), 0)
	return true
}

func (e *entries) bytes() int { return len(e.list)*entryBytes + len(e.names) }

func (e *entries) nameOf(i int) []byte {
	b := e.names[e.list[i].name:]
	return b[:bytes.IndexByte(b, 0)]
}

// finish sorts the functions, keeps one for each start, and gives back the
// memory that is not needed.
func (e *entries) finish() {
	slices.SortFunc(e.list, func(a, b entry) int { return cmp.Compare(a.start, b.start) })
	kept, nameBytes := 0, 0
	for i := 0; i < len(e.list); kept++ {
		best := i
		for i++; i < len(e.list) && e.list[i].start == e.list[best].start; i++ {
			if e.better(i, best) {
				best = i
			}
		}
		nameBytes += len(e.nameOf(best)) + 1
		e.list[kept] = e.list[best]
	}
	list, names := make([]entry, kept), make([]byte, 0, nameBytes)
	copy(list, e.list)
	for i := range list {
		offset := uint32(len(names))
		names = append(append(names, e.nameOf(i)...), 0)
		list[i].name = offset
	}
	*e = entries{list, names}
}

// better chooses among names of the same address: one with a size, then the
// one with fewer underscores in front (malloc, not __libc_malloc), then the
// shorter one, then the first in the alphabet, so that the choice is the same
// each time.
func (e *entries) better(i, j int) bool {
	a, b := e.nameOf(i), e.nameOf(j)
	return 0 > cmp.Or(
		-cmp.Compare(min(e.list[i].size, 1), min(e.list[j].size, 1)),
		cmp.Compare(underscores(a), underscores(b)),
		cmp.Compare(len(a), len(b)),
		bytes.Compare(a, b),
	)
}

func underscores(name []byte) int { return len(name) - len(bytes.TrimLeft(name, "_")) }

// before returns the index of the last entry that starts at or before addr, or -1.
func (e *entries) before(addr uint64) int {
	return sort.Search(len(e.list), func(i int) bool { return e.list[i].start > addr }) - 1
}
