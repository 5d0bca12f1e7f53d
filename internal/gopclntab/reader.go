package gopclntab

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sort"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

const (
	// maxNameBytes of a function or file are kept; with type parameters names can be
	// of any length.
	maxNameBytes = 4 << 10
	// maxKeptNames and maxKeptBytes bound the strings that a Reader keeps, and returns again.
	maxKeptNames = 1024
	maxKeptBytes = 256 << 10
	// keptBytes is what a string takes besides its bytes.
	keptBytes = 64
)

// Reader reads a table. It belongs to one goroutine.
type Reader struct {
	t     Table
	pages pages
	names map[uint64]string // by offset in the file
	kept  int               // bytes of these
	steps steps

	free        func()
	unreachable runtime.Cleanup
}

// NewReader reads a table through from, the file that it was found in.
func NewReader(t Table, from io.ReaderAt) *Reader {
	memory, free := offheap.Reserve[byte](maxPages * pageBytes)
	r := &Reader{t: t, pages: pages{r: from, memory: memory[:cap(memory)], byPage: map[uint64]int{}}, names: map[uint64]string{}, free: free}
	r.unreachable = runtime.AddCleanup(r, func(free func()) { free() }, free)
	return r
}

// Close gives the memory of the Reader back. That of one that is not closed is given back some time after
// its last use.
func (r *Reader) Close() {
	r.unreachable.Stop()
	r.free()
	r.pages = pages{r: r.pages.r, byPage: map[uint64]int{}}
	r.free = func() {}
}

// Bytes returns the memory that the Reader takes, roughly. It is bounded.
func (r *Reader) Bytes() int { return len(r.pages.slots)*pageBytes + r.kept }

// Len returns the number of functions, bounded by the size of the file.
func (r *Reader) Len() int { return int(r.t.functions) }

// Func is a function in the sense of the linker: what was inlined is part of it.
type Func struct {
	Entry, End uint64 // addresses, End exclusive
	StartLine  int    // of its declaration; 0 if not known
	Flags      Flags
	// Foreign is code of another language that Go's linker has put in between, of
	// which the table has nothing but the name.
	Foreign bool
	// Special is one that Go's runtime tells from others by a number, which differs by
	// version (internal/abi/symtab.go, FuncID), or a wrapper.
	Special bool

	name, unit        uint32 // offsets in tables
	stack, file, line uint32 // offsets of pc-value tables
	lists             uint64 // offset of what follows the description's fixed part: pcdata, then funcdata
	pcdata, funcdata  uint32 // how many there are of each
}

// Flags say how a function behaves (internal/abi/symtab.go, FuncFlag).
type Flags uint8

// The flags.
const (
	TopFrame Flags = 1 << iota // nothing called it: stacks end here
	SPWrite                    // it sets the stack pointer by other means than adding to it
	Assembly
)

// Func returns the function that holds an address. ok is false if there is none.
func (r *Reader) Func(pc uint64) (f Func, ok bool, err error) {
	if !r.t.Contains(pc) {
		return Func{}, false, nil
	}
	target := pc - r.t.text
	// The first function behind it: a sentinel follows the last one.
	var searchErr error
	n := sort.Search(int(r.t.functions), func(i int) bool {
		if searchErr != nil {
			return true
		}
		var e entry
		e, searchErr = r.entry(uint64(i))
		return uint64(e.code) > target
	})
	if searchErr != nil {
		return Func{}, false, searchErr
	}
	if n == 0 {
		return Func{}, false, nil
	}
	f, err = r.function(uint64(n - 1))
	return f, err == nil && pc >= f.Entry && pc < f.End, err
}

// Functions calls yield with all functions in the order of their addresses, until it
// returns false.
func (r *Reader) Functions(yield func(Func) bool) error {
	e, err := r.entry(0)
	if err != nil {
		return err
	}
	for i := range r.t.functions {
		next, err := r.entry(i + 1)
		if err != nil {
			return err
		}
		f, err := r.describe(i, e, next)
		if err != nil {
			return err
		}
		if !yield(f) {
			return nil
		}
		e = next
	}
	return nil
}

// Name returns the name of a function, valid UTF-8.
func (r *Reader) Name(f *Func) (string, error) { return r.name(f.name) }

// entry is runtime.functab: a function's code, from the start of all code, and its
// description, from the start of the table of functions.
type entry struct{ code, description uint32 }

func (r *Reader) entry(i uint64) (entry, error) {
	var b [functabBytes]byte
	if err := r.read(b[:], r.t.code, r.t.size, i*functabBytes); err != nil {
		return entry{}, fmt.Errorf("read entry of function %d: %w", i, err)
	}
	return entry{binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])}, nil
}

// read fills b from an offset in the table [start, end) of the file.
func (r *Reader) read(b []byte, start, end, off uint64) error {
	if n := uint64(len(b)); off > end-start || n > end-start-off {
		return &elffile.FormatError{Off: r.t.off + start, Msg: "offset outside of the table", Val: off}
	}
	return r.pages.fill(b, r.t.off+start+off)
}

const (
	// The parts of runtime._func whose size is fixed. Go 1.20 has added the line.
	funcBytes118 = 40
	funcBytes120 = 44
	// pcdataTree is PCDATA_InlTreeIndex, funcdataTree FUNCDATA_InlTree.
	pcdataTree   = 2
	funcdataTree = 3
	noFuncdata   = 1<<32 - 1
	maxPcdata    = 64
)

// function reads the description of function i.
func (r *Reader) function(i uint64) (Func, error) {
	e, err := r.entry(i)
	if err != nil {
		return Func{}, err
	}
	next, err := r.entry(i + 1)
	if err != nil {
		return Func{}, err
	}
	return r.describe(i, e, next)
}

// describe reads the description of function i, runtime._func, which has the entry e.
func (r *Reader) describe(i uint64, e, next entry) (Func, error) {
	size := uint64(funcBytes120)
	if !r.t.current {
		size = funcBytes118
	}
	var fixed [funcBytes120]byte
	if err := r.read(fixed[:size], r.t.code, r.t.size, uint64(e.description)); err != nil {
		return Func{}, fmt.Errorf("read function %d: %w", i, err)
	}
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(fixed[off:]) }
	f := Func{
		Entry: r.t.text + uint64(e.code), End: r.t.text + uint64(next.code),
		name: u32(4), stack: u32(16), file: u32(20), line: u32(24), unit: u32(32),
		Special: fixed[size-4] != 0, Flags: Flags(fixed[size-3]),
		lists: uint64(e.description) + size, pcdata: u32(28), funcdata: uint32(fixed[size-1]),
	}
	f.Foreign = f.stack == 0
	if r.t.current {
		f.StartLine = int(int32(u32(36)))
	}
	if u32(0) != e.code || next.code < e.code {
		return Func{}, &elffile.FormatError{Off: r.t.off + r.t.code, Msg: "function in disorder", Val: i}
	}
	return f, nil
}

// tree is that of the calls that were inlined into a function: its offset, and that of the pc-value
// table of its entries.
type tree struct{ off, index uint32 }

// tree reads where a function's is. ok is false if there is none.
func (r *Reader) tree(f *Func) (t tree, ok bool, err error) {
	if f.pcdata <= pcdataTree || f.pcdata > maxPcdata || f.funcdata <= funcdataTree {
		return tree{}, false, nil
	}
	var b [4]byte
	if err := r.read(b[:], r.t.code, r.t.size, f.lists+4*pcdataTree); err != nil {
		return tree{}, false, err
	}
	t.index = binary.LittleEndian.Uint32(b[:])
	if err := r.read(b[:], r.t.code, r.t.size, f.lists+4*uint64(f.pcdata)+4*funcdataTree); err != nil {
		return tree{}, false, err
	}
	t.off = binary.LittleEndian.Uint32(b[:])
	return t, t.off != noFuncdata && t.index != 0, nil
}

// name returns a name by its offset in the table of names.
func (r *Reader) name(off uint32) (string, error) {
	return r.text(r.t.names, r.t.units, uint64(off))
}

// text returns what the table [start, end) has at an offset, up to a NUL.
func (r *Reader) text(start, end, off uint64) (string, error) {
	if off >= end-start {
		return "", &elffile.FormatError{Off: r.t.off + start, Msg: "name outside of the table", Val: off}
	}
	at := r.t.off + start + off
	if s, ok := r.names[at]; ok {
		return s, nil
	}
	var text []byte
	for from, left := at, min(end-start-off, maxNameBytes); left > 0; {
		b, err := r.pages.at(from)
		if err != nil {
			return "", fmt.Errorf("read name: %w", err)
		}
		b = b[:min(uint64(len(b)), left)]
		if i := bytes.IndexByte(b, 0); i >= 0 {
			if text == nil { // mostly, it is in one page
				return r.keep(at, b[:i])
			}
			text = append(text, b[:i]...)
			break
		}
		text = append(text, b...)
		from, left = from+uint64(len(b)), left-uint64(len(b))
	}
	return r.keep(at, text)
}

// keep returns a name, and remembers it by its offset in the file.
func (r *Reader) keep(at uint64, text []byte) (string, error) {
	if err := r.steps.takeName(len(text)); err != nil {
		return "", err
	}
	s := strings.ToValidUTF8(string(text), "\uFFFD")
	n := keptBytes + len(s)
	if len(r.names) == maxKeptNames || r.kept+n > maxKeptBytes {
		clear(r.names)
		r.kept = 0
	}
	r.names[at] = s
	r.kept += n
	return s, nil
}
