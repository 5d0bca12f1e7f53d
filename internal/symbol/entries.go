package symbol

import (
	"bytes"
	"cmp"
	"slices"
	"sort"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

// entryBytes is what an entry takes beside its name.
const entryBytes = 16

// entry is a function in a compact form.
type entry struct {
	start uint64
	size  uint32 // with unsized: at most
	name  uint32 // offset in the names, which end with NUL
}

// entries are functions sorted by their start, without duplicates.
//
// Large ones live outside of Go's heap: tables are most of what a profiler
// remembers.
type entries struct {
	list  []entry
	names []byte
}

// outsideBytes is the size from which entries live outside of Go's heap.
const outsideBytes = 64 << 10

// begin reserves room for entries of at most maxBytes. It costs only the pages
// that add writes to. discard gives it back, once they were copied.
func (e *entries) begin(maxBytes int) (discard func()) {
	list, names := offheap.Map(maxBytes), offheap.Map(maxBytes)
	if list != nil && names != nil {
		e.list, e.names = offheap.Of[entry](list)[:0], names[:0]
	}
	return func() {
		for _, b := range [][]byte{list, names} {
			if b != nil {
				offheap.Unmap(b)
			}
		}
	}
}

// unsized marks sizes of functions that end where the next one starts.
const unsized = 1 << 31

// addFunction adds a function of a file.
func (e *entries) addFunction(fn *elffile.Function, maxBytes int) bool {
	size := min(fn.Size, unsized-1)
	if size == 0 {
		size = unsized + 1 + min(fn.Room-1, maxUnsizedBytes-1) // a Room of 0 is not known
	}
	return e.add(fn.Value, size, fn.Name, maxBytes)
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

func (e *entries) nameOf(i int) []byte { return e.text(e.list[i].name) }

// text returns the name at an offset.
func (e *entries) text(offset uint32) []byte {
	b := e.names[offset:]
	return b[:bytes.IndexByte(b, 0)]
}

// tidy sorts the functions and keeps one for each start. It returns what their names take.
func (e *entries) tidy() (nameBytes int) {
	slices.SortFunc(e.list, func(a, b entry) int { return cmp.Compare(a.start, b.start) })
	kept := 0
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
	e.list = e.list[:kept]
	return nameBytes
}

// allocate makes room for n entries and their names; outside is the memory that
// both are in, if it is not Go's.
func allocate(n, nameBytes int) (list []entry, names, outside []byte) {
	if bytes := n*entryBytes + nameBytes; bytes >= outsideBytes {
		outside = offheap.Map(bytes)
	}
	if outside == nil {
		return make([]entry, n), make([]byte, 0, nameBytes), nil
	}
	split := n * entryBytes
	return offheap.Of[entry](outside[:split]), outside[split:split:len(outside)], outside
}

// better chooses among names of the same address: one with a size, then the
// one with fewer underscores in front (malloc, not __libc_malloc), then the
// shorter one, then the first in the alphabet, so that the choice is the same
// each time.
func (e *entries) better(i, j int) bool {
	a, b := e.nameOf(i), e.nameOf(j)
	return 0 > cmp.Or(
		cmp.Compare(e.list[i].size&unsized, e.list[j].size&unsized),
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
