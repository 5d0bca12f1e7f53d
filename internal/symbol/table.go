package symbol

import (
	"sync"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// maxNesting is how far back a function is looked for that holds an address,
	// but has others inside.
	maxNesting = 16
	// maxUnsizedBytes bounds how far a function without a size may reach. Such
	// are written in assembly, and small.
	maxUnsizedBytes = 64 << 10
)

// Table is the functions of one ELF file. It does not refer to the file any
// more. Its methods may be called from everywhere.
type Table struct {
	compact
	truncated  bool // the file has more functions than are kept
	incomplete bool // the file was stripped, or could not be read to its end

	mu        sync.Mutex
	memo      memo[int] // by index
	demangler demangler
}

// NewTable reads the functions of a file from .symtab and the dynamic symbols,
// and at most maxBytes of them, as they are before their names are compressed (Truncated).
// When the file is damaged, it keeps what could be read, and the error says what is wrong.
func NewTable(f *elffile.File, maxBytes int) (*Table, error) {
	t := &Table{}
	var all entries
	discard := all.begin(maxBytes)
	defer discard()
	err := f.Functions(func(fn elffile.Function) bool {
		t.truncated = !all.addFunction(&fn, maxBytes)
		return !t.truncated
	})
	t.incomplete = err != nil
	t.compact = compactEntries(t, &all)
	return t, err
}

// Len returns the number of functions.
func (t *Table) Len() int { return len(t.sizes) }

// Bytes returns the memory that the functions take, roughly.
func (t *Table) Bytes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes() + t.memo.bytes
}

// forget drops the names that are kept ready, and returns how many bytes they took.
func (t *Table) forget() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.memo.bytes
	t.memo = memo[int]{}
	return n
}

// Truncated reports whether the file has more functions than are kept.
func (t *Table) Truncated() bool { return t.truncated }

// Lookup returns the function that holds a virtual address of the file.
func (t *Table) Lookup(vaddr uint64) (Function, bool) {
	fn, _, ok := t.lookup(vaddr, namer{})
	return fn, ok
}

// lookup is Lookup for a user, for whom there may be no time left to demangle the name. more is how
// many bytes more the table takes.
func (t *Table) lookup(vaddr uint64, of namer) (fn Function, more int, ok bool) {
	i := t.find(vaddr)
	if i < 0 {
		return Function{}, 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	name, ok := t.memo.names[i]
	if ok {
		return Function{name}, 0, true
	}
	if name, ok = of.name(&t.demangler, t.nameOf(i)); ok {
		more = t.memo.keep(i, name)
	}
	return Function{name}, more, true
}

func (t *Table) find(vaddr uint64) int {
	last := t.before(vaddr)
	for i := last; i >= 0 && last-i < maxNesting; i-- {
		start, size := t.start(i), t.sizes[i]
		if size&unsized == 0 {
			if vaddr-start < uint64(size) {
				return i
			}
			continue
		}
		// A function of unknown size ends where the next one starts. If some are
		// missing, it might swallow them.
		if i == last && vaddr-start < uint64(size&^unsized) && (!t.truncated && !t.incomplete || vaddr == start) {
			return i
		}
	}
	return -1
}
