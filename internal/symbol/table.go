package symbol

import "sync"

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

// Len returns the number of functions.
func (t *Table) Len() int { return len(t.sizes) }

// Bytes returns the memory that the functions take, roughly.
func (t *Table) Bytes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bytes() + t.memo.bytes()
}

// forget drops the names that are kept ready, and returns how many bytes they took.
func (t *Table) forget() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.memo.bytes()
	t.memo = memo[int]{}
	return n
}

// Truncated reports whether the file has more functions than are kept.
func (t *Table) Truncated() bool { return t.truncated }

// lookup returns the name of the function that holds a virtual address of the file, for a user, for whom there may be
// no time left to demangle it. more is how many bytes more the table takes.
func (t *Table) lookup(vaddr uint64, of namer) (name string, more int, ok bool) {
	i := t.find(vaddr)
	if i < 0 {
		return "", 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.memo.bytes()
	name, ok = t.memo.find(i)
	if !ok {
		if name, ok = of.name(&t.demangler, t.nameOf(i)); ok {
			t.memo.keep(i, name)
		}
	}
	return name, t.memo.bytes() - before, true
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
