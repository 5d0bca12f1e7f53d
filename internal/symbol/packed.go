package symbol

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"sort"
	"unsafe"

	"github.com/klauspost/compress/s2"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

const (
	// packedBlock is how many functions are decompressed to find one of them.
	packedBlock = 128
	// paddingPrefix begins the names of what lies before functions of the x86-64 kernel:
	// half of all its symbols.
	paddingPrefix = "__pfx_"
)

// packed is what entries are, in less memory (a sixth for the kernel of x86-64), and slower to
// find: blocks of functions, compressed by S2. Its memory is outside of Go's heap, as that of
// entries.
//
// A function is the distance from the start of the one before (0 for the first of a block,
// whose start is in heads), its size and the kind of its name (uvarint size<<1|kind). Kind 0
// is followed by the name, which ends with NUL. Kind 1 is paddingPrefix and the name of the
// next function, which is of the same block.
type packed struct {
	heads []packedHead
	data  []byte
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
	name  []byte // valid until the next block is decompressed
}

// packEntries copies entries, which are sorted; the memory is given back when the owner, which
// holds the result, can't be reached any more.
func packEntries[T any](owner *T, e *entries) packed {
	p := packed{}
	var data, text, compressed []byte
	if scratch := offheap.Map(e.packedBytes()); scratch != nil {
		defer offheap.Unmap(scratch)
		data = scratch[:0]
	}
	for begin := 0; begin < len(e.list); begin += packedBlock {
		previous := e.list[begin].start
		p.heads = append(p.heads, packedHead{previous, uint64(len(data))})
		text = text[:0]
		for i := begin; i < min(begin+packedBlock, len(e.list)); i++ {
			f := &e.list[i]
			text = binary.AppendUvarint(text, f.start-previous)
			previous = f.start
			if e.isPadding(i) {
				text = binary.AppendUvarint(text, uint64(f.size)<<1|1)
				continue
			}
			text = binary.AppendUvarint(text, uint64(f.size)<<1)
			text = append(append(text, e.nameOf(i)...), 0)
		}
		compressed = s2.EncodeBetter(compressed[:cap(compressed)], text)
		data = append(data, compressed...)
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

func (p *packed) bytes() int { return len(p.heads)*packedHeadBytes + len(p.data) }

// equal reports whether both have the same functions.
func (p *packed) equal(other *packed) bool {
	return slices.Equal(p.heads, other.heads) && bytes.Equal(p.data, other.data)
}

// before returns the last function that starts at or before addr. Its name may be in scratch,
// which is returned, too.
func (p *packed) before(addr uint64, scratch []byte) (f packedFunction, _ []byte, ok bool) {
	block := sort.Search(len(p.heads), func(i int) bool { return p.heads[i].start > addr }) - 1
	if block < 0 {
		return packedFunction{}, scratch, false
	}
	d, scratch := p.block(block, scratch)
	for len(d.text) > 0 && d.nextStart() <= addr {
		d.next()
	}
	return d.function(), scratch, true
}

// packedDecoder goes through the functions of a block.
type packedDecoder struct {
	text    []byte // of those that are left
	start   uint64
	size    uint32
	padding bool
	name    []byte // unless it is padding
}

// block decompresses a block into scratch, which is returned, too.
func (p *packed) block(i int, scratch []byte) (packedDecoder, []byte) {
	end := uint64(len(p.data))
	if i+1 < len(p.heads) {
		end = p.heads[i+1].offset
	}
	text, err := s2.Decode(scratch[:cap(scratch)], p.data[p.heads[i].offset:end])
	if err != nil {
		return packedDecoder{}, scratch // it was encoded above: that cannot be
	}
	return packedDecoder{text: text, start: p.heads[i].start}, text
}

// nextStart is the start of the next function; there is one.
func (d *packedDecoder) nextStart() uint64 {
	distance, _ := binary.Uvarint(d.text)
	return d.start + distance
}

// next goes on to the next function; there is one.
func (d *packedDecoder) next() {
	d.start += d.uvarint()
	size := d.uvarint()
	d.size, d.padding = uint32(size>>1), size&1 != 0
	if !d.padding {
		n := bytes.IndexByte(d.text, 0)
		d.name, d.text = d.text[:n], d.text[n+1:]
	}
}

func (d *packedDecoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.text)
	d.text = d.text[n:]
	return x
}

// function is the one that d is at; d is not to be used any more.
func (d *packedDecoder) function() packedFunction {
	f := packedFunction{start: d.start, size: d.size, name: d.name}
	if d.padding {
		d.next()
		f.name = append([]byte(paddingPrefix), d.name...)
	}
	return f
}
