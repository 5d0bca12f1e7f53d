package symbol

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"sort"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

const (
	// packedBlock is how many functions follow one another from a known place.
	packedBlock = 32
	// paddingPrefix begins the names of what lies before functions of the x86-64 kernel:
	// half of all its symbols.
	paddingPrefix = "__pfx_"
)

// packed is what entries are, in less memory (a third for the kernel of x86-64), and slower to
// find: what many
// functions have in common with the one before is kept once a block. Its memory is
// outside of Go's heap, as that of entries.
//
// A function is the distance from the start of the one before (0 for the first of a block,
// whose start is in heads), its size and the kind of its name (uvarint size<<1|kind). Kind 1
// is paddingPrefix and the name of the next function, which is of the same block. Kind 0 is
// how many bytes the name shares with the last one of kind 0, how many follow (uvarint
// each), and these.
type packed struct {
	heads []packedHead
	data  []byte
	n     int
}

type packedHead struct {
	start  uint64
	offset uint64
}

const packedHeadBytes = int(unsafe.Sizeof(packedHead{}))

// packedFunction is a function of packed.
type packedFunction struct {
	start uint64
	size  uint32
	name  []byte // valid until the next one is decoded
}

// packEntries copies entries, which are sorted; the memory is given back when the owner, which
// holds the result, can't be reached any more.
func packEntries[T any](owner *T, e *entries) packed {
	p := packed{n: len(e.list)}
	var data []byte
	if scratch := offheap.Map(e.packedBytes()); scratch != nil {
		defer offheap.Unmap(scratch)
		data = scratch[:0]
	}
	var last []byte
	previous := uint64(0)
	for i := range e.list {
		f := &e.list[i]
		if i%packedBlock == 0 {
			p.heads = append(p.heads, packedHead{f.start, uint64(len(data))})
			last, previous = nil, f.start
		}
		data = binary.AppendUvarint(data, f.start-previous)
		previous = f.start
		name := e.nameOf(i)
		if e.isPadding(i) {
			data = binary.AppendUvarint(data, uint64(f.size)<<1|1)
			continue
		}
		data = binary.AppendUvarint(data, uint64(f.size)<<1)
		shared := commonPrefix(last, name)
		data = binary.AppendUvarint(data, uint64(shared))
		data = binary.AppendUvarint(data, uint64(len(name)-shared))
		data = append(data, name[shared:]...)
		last = name
	}
	if p.data = offheap.Map(max(len(data), 1)); p.data != nil {
		runtime.AddCleanup(owner, offheap.Unmap, p.data)
	} else {
		p.data = make([]byte, len(data))
	}
	p.data = p.data[:copy(p.data, data)]
	return p
}

// packedBytes is no less than what the entries take packed.
func (e *entries) packedBytes() int { return len(e.list)*4*binary.MaxVarintLen64 + len(e.names) + 1 }

// isPadding tells whether a function's name follows from the next one of its block.
func (e *entries) isPadding(i int) bool {
	if i+1 == len(e.list) || (i+1)%packedBlock == 0 {
		return false
	}
	rest, ok := bytes.CutPrefix(e.nameOf(i), []byte(paddingPrefix))
	return ok && bytes.Equal(rest, e.nameOf(i+1)) && !e.isPadding(i+1)
}

func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func (p *packed) bytes() int { return len(p.heads)*packedHeadBytes + len(p.data) }

// equal reports whether both have the same functions.
func (p *packed) equal(other *packed) bool {
	return slices.Equal(p.heads, other.heads) && bytes.Equal(p.data, other.data)
}

// before returns the last function that starts at or before addr. Its name is in scratch,
// which is returned, too.
func (p *packed) before(addr uint64, scratch []byte) (f packedFunction, _ []byte, ok bool) {
	block := sort.Search(len(p.heads), func(i int) bool { return p.heads[i].start > addr }) - 1
	if block < 0 {
		return packedFunction{}, scratch, false
	}
	d := p.block(block, scratch)
	for d.left > 0 && d.nextStart() <= addr {
		d.next()
	}
	return d.function(), d.name, true
}

// packedDecoder goes through the functions of a block.
type packedDecoder struct {
	data    []byte
	left    int
	start   uint64
	size    uint32
	padding bool
	name    []byte // of the last function with a name of its own
}

func (p *packed) block(i int, scratch []byte) packedDecoder {
	return packedDecoder{
		data:  p.data[p.heads[i].offset:],
		left:  min(packedBlock, p.n-i*packedBlock),
		start: p.heads[i].start,
		name:  scratch[:0],
	}
}

// nextStart is the start of the next function; there is one.
func (d *packedDecoder) nextStart() uint64 {
	distance, _ := binary.Uvarint(d.data)
	return d.start + distance
}

// next goes on to the next function; there is one.
func (d *packedDecoder) next() {
	d.left--
	d.start += d.uvarint()
	size := d.uvarint()
	d.size, d.padding = uint32(size>>1), size&1 != 0
	if !d.padding {
		d.decodeName()
	}
}

func (d *packedDecoder) decodeName() {
	shared, more := int(d.uvarint()), int(d.uvarint())
	d.name = append(d.name[:shared], d.data[:more]...)
	d.data = d.data[more:]
}

func (d *packedDecoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.data)
	d.data = d.data[n:]
	return x
}

// function is the one that d is at; d is not to be used any more.
func (d *packedDecoder) function() packedFunction {
	f := packedFunction{start: d.start, size: d.size}
	if d.padding {
		d.next()
		d.name = append(d.name, paddingPrefix...)
		copy(d.name[len(paddingPrefix):], d.name)
		copy(d.name, paddingPrefix)
	}
	f.name = d.name
	return f
}
