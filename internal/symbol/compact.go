package symbol

import (
	"bytes"
	"math"
	"runtime"
	"sort"
	"unsafe"

	"github.com/klauspost/compress/s2"

	"github.com/customlabels/otelcol-customlabels/internal/offheap"
)

// A block has the names of at most maxBlockFunctions, and ends with the name with which it reaches
// maxBlockBytes: so much is decompressed for one name, of usual files some 5 KiB.
const maxBlockFunctions, maxBlockBytes = 64, 8 << 10

// compact is what entries are, as fast to find, in less memory, of large files 0.35 to 0.45 of it: names
// are compressed in blocks, of which one is read for a name. Large ones live outside of Go's heap, as
// entries do.
type compact struct {
	base   uint64   // where the first function starts
	starts []uint32 // from base
	far    []uint64 // starts, where those do not fit
	sizes  []uint32 // as entry.size
	blocks []nameBlock
	names  []byte
}

// nameBlock is where names are, which end with NUL, compressed by S2.
type nameBlock struct {
	first  uint32 // function
	offset uint32 // in names
}

// compactUpTo tidies entries up and copies as many as take at most maxBytes, those with the lowest addresses; whole
// says whether these are all. The memory is given back when the owner, which holds the result, can't be reached any
// more.
func compactUpTo[T any](owner *T, e *entries, maxBytes int) (c compact, whole bool) {
	nameBytes := e.tidy()
	base, reach := uint64(0), uint64(0)
	if n := len(e.list); n > 0 {
		base = e.list[0].start
		reach = e.list[n-1].start - base
	}
	far, all := reach > math.MaxUint32, len(e.list)
	var names []byte
	if scratch := offheap.Map(max(nameBytes, 1)); scratch != nil {
		defer offheap.Unmap(scratch)
		names = scratch[:0]
	}
	var blocks []nameBlock
	var text, packed []byte
	for i := 0; i < len(e.list); {
		blocks = append(blocks, nameBlock{uint32(i), uint32(len(names))})
		text = text[:0]
		for end := i + maxBlockFunctions; i < min(end, len(e.list)) && len(text) < maxBlockBytes; i++ {
			text = append(append(text, e.nameOf(i)...), 0)
		}
		packed = s2.Encode(packed[:cap(packed)], text)
		if compactBytes(i, len(blocks), len(names)+len(packed), far) > maxBytes {
			last := len(blocks) - 1
			e.list, blocks = e.list[:blocks[last].first], blocks[:last]
			break
		}
		names = append(names, packed...)
	}
	c = allocateCompact(owner, len(e.list), len(blocks), len(names), far)
	c.base = base
	for i := range e.list {
		c.sizes[i] = e.list[i].size
		if c.far != nil {
			c.far[i] = e.list[i].start
		} else {
			c.starts[i] = uint32(e.list[i].start - base)
		}
	}
	copy(c.blocks, blocks)
	copy(c.names, names)
	return c, len(e.list) == all
}

// compactBytes returns what n functions and blocks of names take.
func compactBytes(n, blocks, nameBytes int, far bool) int {
	startBytes := 4
	if far {
		startBytes = 8
	}
	return (startBytes+4)*n + nameBlockBytes*blocks + nameBytes
}

// allocateCompact makes room for n functions, and for blocks of names.
func allocateCompact[T any](owner *T, n, blocks, nameBytes int, far bool) (c compact) {
	var b []byte
	if total := compactBytes(n, blocks, nameBytes, far); total >= outsideBytes {
		if b = offheap.Map(total); b != nil {
			runtime.AddCleanup(owner, offheap.Unmap, b)
		}
	}
	if far {
		c.far = cut[uint64](&b, n)
	} else {
		c.starts = cut[uint32](&b, n)
	}
	c.sizes = cut[uint32](&b, n)
	c.blocks = cut[nameBlock](&b, blocks)
	c.names = cut[byte](&b, nameBytes)
	return c
}

// cut takes n values from the front of b, memory that is not Go's; if there is none, it makes them.
func cut[T any](b *[]byte, n int) []T {
	if *b == nil {
		return make([]T, n)
	}
	var v T
	bytes := n * int(unsafe.Sizeof(v))
	list := offheap.Of[T]((*b)[:bytes])
	*b = (*b)[bytes:]
	return list
}

const nameBlockBytes = int(unsafe.Sizeof(nameBlock{}))

func (c *compact) bytes() int {
	return 4*len(c.starts) + 8*len(c.far) + 4*len(c.sizes) + nameBlockBytes*len(c.blocks) + len(c.names)
}

// before returns the index of the last function that starts at or before addr, or -1.
func (c *compact) before(addr uint64) int {
	return sort.Search(len(c.sizes), func(i int) bool { return c.start(i) > addr }) - 1
}

// start returns where a function starts.
func (c *compact) start(i int) uint64 {
	if c.far != nil {
		return c.far[i]
	}
	return c.base + uint64(c.starts[i])
}

// nameOf returns the name of a function, in memory of its own.
func (c *compact) nameOf(i int) []byte {
	n := sort.Search(len(c.blocks), func(n int) bool { return int(c.blocks[n].first) > i })
	block, end := c.blocks[n-1], len(c.names)
	if n < len(c.blocks) {
		end = int(c.blocks[n].offset)
	}
	text, err := s2.Decode(nil, c.names[block.offset:end])
	if err != nil {
		return nil // it was encoded above: that cannot be
	}
	for range i - int(block.first) {
		text = text[bytes.IndexByte(text, 0)+1:]
	}
	return text[:bytes.IndexByte(text, 0)]
}
