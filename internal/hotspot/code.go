package hotspot

import (
	"bytes"
	"fmt"
	"sort"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// objectMask has the bits of an object that say what it is: record.HotSpotCode and so on.
const objectMask = 7

// Names of the blobs that are nmethods.
const (
	nameCompiled = "nmethod"
	nameNative   = "native nmethod"
)

// Bounds of what is read of one nmethod.
const (
	maxBlobBytes  = 64 << 20
	maxPCBytes    = 1 << 20
	maxScopeBytes = 1 << 20
	maxMetadata   = 1 << 13
	maxScopes     = 1 << 16
	maxInlined    = 128 // methods within each other
	maxBlobName   = 64
	// maxMethodBytes are read of all methods of one nmethod.
	maxMethodBytes = 4 << 20
	pcDescBytes    = 16
	minPageBytes   = 4096 // pages may be larger
)

// Read implements langruntime.Process.
func (p *process) Read(mem langruntime.Memory, object uint64, cookie uint32) (langruntime.Function, error) {
	switch object & objectMask {
	case record.HotSpotMethod:
		return p.readMethod(mem, object&^objectMask, cookie)
	case record.HotSpotCode:
		return p.readCode(mem, object, cookie)
	}
	return nil, fmt.Errorf("%w: no object", langruntime.ErrGone)
}

// blob is a CodeBlob as it was read.
type blob struct {
	addr   uint64
	bytes  [record.HotSpotBlobBytes + 8]byte
	name   string
	cookie uint32
}

func (b *blob) nmethod() bool { return b.name == nameCompiled || b.name == nameNative }

func (b *blob) word(at int) uint64 { return word(b.bytes[:], at) }
func (b *blob) half(at int) uint64 { return uint64(half(b.bytes[:], at)) }

// blob reads a CodeBlob as the sampling programs do: read_hotspot_blob of hotspotread.bpf.h.
func (p *process) blob(r *reader, addr uint64) *blob {
	b := &blob{addr: addr}
	p.readBlob(r, b)
	b.name = blobNameAt(r, b.word(p.blobName))
	hash := record.Mix(addr, b.word(p.blobName))
	if b.nmethod() {
		hash = record.Mix(hash, b.half(p.compileID))
		hash = record.Mix(hash, b.word(p.method))
	} else {
		hash = record.Mix(hash, b.half(p.blobSize))
	}
	b.cookie = uint32(hash >> 32)
	return b
}

// readBlob reads the begin of a CodeBlob. Behind one that is smaller may be what its code heap has not taken into use,
// which begins with a page and cannot be read: there are zeros instead.
func (p *process) readBlob(r *reader, b *blob) {
	to := b.bytes[:p.blobBytes]
	left := minPageBytes - b.addr%minPageBytes
	if left >= uint64(len(to)) || r.mem.ReadAt(to[left:], b.addr+left) == nil {
		r.bytes(to, b.addr)
		return
	}
	clear(to)
	if r.bytes(to[:left], b.addr); r.err == nil && b.half(p.blobSize) > left {
		r.err = fmt.Errorf("%w: it cannot be read", langruntime.ErrGone)
	}
}

// unchanged tells whether a blob is still what it was before: its block is in use, and so
// are its tables.
func (p *process) unchanged(r *reader, before *blob) bool {
	var used [1]byte
	after := p.blob(r, before.addr)
	r.bytes(used[:], before.addr-uint64(p.record.BlockBytes)+uint64(p.blockUsed))
	if used[0] == 0 || after.cookie != before.cookie {
		return false
	}
	if p.version != version25 {
		return true
	}
	return after.word(p.immutable) == before.word(p.immutable) && after.word(p.mutable) == before.word(p.mutable)
}

// blobNameAt reads a string of C, in pieces that no page divides.
func blobNameAt(r *reader, addr uint64) string {
	var name [maxBlobName]byte
	for n := 0; n < maxBlobName && r.err == nil; {
		piece := name[n:min(n+16-int(addr%16), maxBlobName)]
		r.bytes(piece, addr)
		if end := bytes.IndexByte(piece, 0); end >= 0 {
			return text(name[:n+end])
		}
		n += len(piece)
		addr += uint64(len(piece))
	}
	return ""
}

// stub is code that belongs to no method.
type stub string

// inHeap stands for frames of a virtual thread that are not on its carrier's stack.
const inHeap = "<frames in the heap>"

// Frames implements langruntime.Function.
func (s stub) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	if position == record.HotSpotInHeap {
		return append(to, langruntime.Frame{Name: inHeap})
	}
	return append(to, langruntime.Frame{Name: string(s)})
}

// Bytes implements langruntime.Function.
func (s stub) Bytes() int { return len(s) }

func (p *process) readCode(mem langruntime.Memory, object uint64, cookie uint32) (langruntime.Function, error) {
	r := &reader{mem: mem}
	before := p.blob(r, object)
	switch {
	case r.err != nil:
		return nil, r.err
	case before.cookie != cookie:
		return nil, fmt.Errorf("%w: other code is there", langruntime.ErrGone)
	case before.name == "":
		return nil, fmt.Errorf("%w: code without a name", langruntime.ErrGone)
	case !before.nmethod():
		if again := p.blob(r, object); r.err != nil || again.cookie != cookie || again.name != before.name {
			return nil, fmt.Errorf("%w: it was replaced", langruntime.ErrGone)
		}
		return stub(before.name), nil
	}
	c, err := p.compiled(r, before)
	if err != nil {
		return nil, err
	}
	unchanged := p.unchanged(r, before)
	if r.err != nil {
		return nil, r.err
	}
	if !unchanged {
		return nil, fmt.Errorf("%w: it was freed or replaced", langruntime.ErrGone)
	}
	return c, nil
}

// compiled is the code of a method and of what was inlined into it.
type compiled struct {
	own     langruntime.Frame // at its first line
	places  []place           // by ascending pc
	scopes  []scope
	methods []langruntime.Frame
	size    int
}

// place says that code up to pc belongs to a scope.
type place struct {
	pc    uint32
	scope int32
}

// scope is a line of a method, and where that was inlined.
type scope struct {
	method int32
	line   int32
	sender int32 // -1: it was not
	depth  int32 // how many methods it is within
}

// Frames implements langruntime.Function.
func (c *compiled) Frames(to []langruntime.Frame, position uint32) []langruntime.Frame {
	own := c.own
	if position == 0 {
		own.Line = 0
		return append(to, own)
	}
	i := sort.Search(len(c.places), func(i int) bool { return c.places[i].pc >= position })
	switch {
	case i < len(c.places):
		for at := c.places[i].scope; at >= 0; at = c.scopes[at].sender {
			f := c.methods[c.scopes[at].method]
			f.Line = int(c.scopes[at].line)
			to = append(to, f)
		}
		return to
	case i > 0: // behind the last one: what was inlined there has ended
		at := c.places[i-1].scope
		for c.scopes[at].sender >= 0 {
			at = c.scopes[at].sender
		}
		own.Line = int(c.scopes[at].line)
	}
	return append(to, own)
}

// Bytes implements langruntime.Function.
func (c *compiled) Bytes() int { return c.size }

// debug is what an nmethod says of its code.
type debug struct {
	pcs, scopes []byte
	metadata    []byte
}

// debug reads it.
func (p *process) debug(r *reader, b *blob) (d debug, err error) {
	size := b.half(p.blobSize)
	var pcs, pcsEnd, scopes, scopesEnd, metadata, metadataEnd uint64
	if p.version == version25 {
		immutable, mutable := b.word(p.immutable), b.word(p.mutable)
		end := immutable + b.half(p.immutableSize)
		pcs, pcsEnd = immutable+b.half(p.scopesPCs), immutable+b.half(p.scopesData)
		scopes, scopesEnd = pcsEnd, end
		metadata, metadataEnd = mutable+(b.half(p.relocationSize)+7)&^7, mutable+b.half(p.mutableSize)
	} else {
		pcs, pcsEnd = b.addr+b.half(p.scopesPCs), b.addr+b.half(p.dependencies)
		scopes, scopesEnd = b.word(p.scopesData), pcs
		metadata, metadataEnd = b.addr+b.half(p.metadata), scopes
		if size > maxBlobBytes || scopes < b.addr || pcsEnd > b.addr+size {
			return d, fmt.Errorf("%w: tables outside of the code", langruntime.ErrGone)
		}
	}
	for _, part := range [...]struct {
		to         *[]byte
		start, end uint64
		most       uint64
	}{{&d.pcs, pcs, pcsEnd, maxPCBytes}, {&d.scopes, scopes, scopesEnd, maxScopeBytes}, {&d.metadata, metadata, metadataEnd, 8 * maxMetadata}} {
		if part.end < part.start || part.end-part.start > part.most {
			return d, fmt.Errorf("%w: a table of %d bytes", langruntime.ErrGone, part.end-part.start)
		}
		*part.to = make([]byte, part.end-part.start)
		r.bytes(*part.to, part.start)
	}
	return d, r.err
}

// compiled reads an nmethod.
func (p *process) compiled(r *reader, b *blob) (*compiled, error) {
	s := &scopeReader{p: p, r: r, c: &compiled{}, known: map[uint32]int32{}, methods: map[uint64]int32{}}
	own, err := s.method(b.word(p.method))
	if err != nil {
		return nil, err
	}
	if s.debug, err = p.debug(r, b); err != nil {
		return nil, err
	}
	for at := 0; at+pcDescBytes <= len(s.debug.pcs); at += pcDescBytes {
		pc, offset := signed(s.debug.pcs, at), half(s.debug.pcs, at+4)
		if pc < 0 || offset == 0 {
			continue // the first one stands for nothing; others have no scope
		}
		sc, err := s.scope(offset, 0)
		if err != nil {
			return nil, err
		}
		if n := len(s.c.places); n > 0 && uint32(pc) < s.c.places[n-1].pc {
			return nil, fmt.Errorf("%w: code in no order", langruntime.ErrGone)
		}
		s.c.places = append(s.c.places, place{uint32(pc), sc})
	}
	return s.finish(own), nil
}

// scopeReader reads the scopes of an nmethod.
type scopeReader struct {
	p       *process
	r       *reader
	debug   debug
	c       *compiled
	known   map[uint32]int32 // scopes, by offset
	methods map[uint64]int32 // by address
	read    []*method
	bytes   int // of methods
}

// method returns the number of a method.
func (s *scopeReader) method(addr uint64) (int32, error) {
	if n, ok := s.methods[addr]; ok {
		return n, nil
	}
	h := s.p.head(s.r, addr)
	m := s.p.contents(s.r, &h)
	if s.r.err != nil {
		return 0, s.r.err
	}
	if s.bytes += m.bytes(); s.bytes > maxMethodBytes {
		return 0, fmt.Errorf("%w: methods of %d bytes", langruntime.ErrGone, s.bytes)
	}
	n := int32(len(s.read))
	s.methods[addr] = n
	s.read = append(s.read, m)
	return n, nil
}

// scope returns the number of the scope at an offset. inner is how many scopes have led there.
func (s *scopeReader) scope(offset uint32, inner int) (int32, error) {
	if n, ok := s.known[offset]; ok {
		return n, nil
	}
	if uint64(offset) >= uint64(len(s.debug.scopes)) || inner == maxInlined || len(s.c.scopes) == maxScopes {
		return 0, fmt.Errorf("%w: scopes that lead nowhere", langruntime.ErrGone)
	}
	in := stream{b: s.debug.scopes[offset:], excess: s.p.excess()}
	senderAt, index, bytecode := in.uint(), in.uint(), int(in.uint())-1
	if in.bad || index == 0 || 8*uint64(index) > uint64(len(s.debug.metadata)) {
		return 0, fmt.Errorf("%w: scopes without a method", langruntime.ErrGone)
	}
	sender, depth := int32(-1), int32(0)
	var err error
	if senderAt != 0 {
		if sender, err = s.scope(senderAt, inner+1); err != nil {
			return 0, err
		}
		// Some of those that are known already may have led to it.
		if depth = s.c.scopes[sender].depth + 1; depth == maxInlined {
			return 0, fmt.Errorf("%w: scopes within too many others", langruntime.ErrGone)
		}
	}
	m, err := s.method(word(s.debug.metadata, 8*int(index-1)))
	if err != nil {
		return 0, err
	}
	n := int32(len(s.c.scopes))
	s.c.scopes = append(s.c.scopes, scope{m, int32(lineOf(s.read[m].lines, max(bytecode, 0))), sender, depth})
	s.known[offset] = n
	return n, nil
}

// finish keeps what is needed.
func (s *scopeReader) finish(own int32) *compiled {
	c := s.c
	c.size = int(unsafe.Sizeof(*c)) + cap(c.places)*int(unsafe.Sizeof(place{})) + cap(c.scopes)*int(unsafe.Sizeof(scope{}))
	for _, m := range s.read {
		c.methods = append(c.methods, langruntime.Frame{Name: m.name, File: m.file})
		c.size += int(unsafe.Sizeof(langruntime.Frame{})) + len(m.name) + len(m.file)
	}
	c.own = c.methods[own]
	c.own.Line = lineOf(s.read[own].lines, 0)
	return c
}
