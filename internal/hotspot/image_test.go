package hotspot

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// image is memory of a process that is made up.
type image struct {
	bytes []byte // from imageBase on
}

const imageBase = 0x7f0000000000

// ReadAt implements langruntime.Memory.
func (m *image) ReadAt(p []byte, addr uint64) error {
	if addr < imageBase || addr-imageBase > uint64(len(m.bytes)) || uint64(len(p)) > uint64(len(m.bytes))-(addr-imageBase) {
		return fakemem.ErrUnmapped
	}
	copy(p, m.bytes[addr-imageBase:])
	return nil
}

// alloc returns the address of new memory, which a reader of pages finds whole.
func (m *image) alloc(n int) uint64 {
	addr := imageBase + uint64(len(m.bytes))
	m.bytes = append(m.bytes, make([]byte, (n+15)&^15)...)
	return addr
}

func (m *image) put(addr, v uint64, size int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(m.bytes[addr-imageBase:], b[:size])
}

func (m *image) data(b []byte) uint64 {
	addr := m.alloc(len(b) + 1)
	copy(m.bytes[addr-imageBase:], b)
	return addr
}

func (m *image) text(s string) uint64 { return m.data([]byte(s)) }

// symbol makes a Symbol.
func (m *image) symbol(s string) uint64 {
	addr := m.alloc(6 + len(s))
	m.put(addr, 0x12340001, 4)
	m.put(addr+4, uint64(len(s)), 2)
	copy(m.bytes[addr+6-imageBase:], s)
	return addr
}

// What the tables of 17 and of 25 say of the fields that are read.
const fields17 = `
ConstantPool._pool_holder 24|ConstantPool._length 60|ConstantPool._source_file_name_index 54|Klass._name 24
Method._constMethod 8|ConstMethod._constants 8|ConstMethod._constMethod_size 24|ConstMethod._flags 28
ConstMethod._code_size 32|ConstMethod._name_index 34|ConstMethod._signature_index 36|ConstMethod._method_idnum 38
Symbol._length 4|Symbol._body 6|VirtualSpace._low_boundary 0|VirtualSpace._high_boundary 8
CodeHeap._memory 8|CodeHeap._segmap 120|CodeHeap._log2_segment_size 256
GrowableArrayBase._len 0|GrowableArray<int>._data 8|StubQueue._stub_buffer 8|StubQueue._buffer_limit 20|StubQueue._queue_end 28
CodeBlob._name 96|CodeBlob._size 12|CodeBlob._frame_complete_offset 20|CodeBlob._frame_size 28|CodeBlob._code_begin 32
CompiledMethod._method 112|CompiledMethod._scopes_data_begin 120|CompiledMethod._deopt_handler_begin 128
CompiledMethod._deopt_mh_handler_begin 136|nmethod._orig_pc_offset 300|nmethod._metadata_offset 260
nmethod._scopes_pcs_offset 268|nmethod._dependencies_offset 272|nmethod._verified_entry_point 224|nmethod._compile_id 304
HeapBlock::Header._used 8`

const fields25 = `
ConstantPool._pool_holder 24|ConstantPool._length 60|ConstantPool._source_file_name_index 54|Klass._name 24
Method._constMethod 8|ConstMethod._constants 8|ConstMethod._constMethod_size 24|ConstMethod._flags._flags 28
ConstMethod._code_size 34|ConstMethod._name_index 36|ConstMethod._signature_index 38|ConstMethod._method_idnum 40
Symbol._length 4|Symbol._body 6|VirtualSpace._low_boundary 0|VirtualSpace._high_boundary 8
CodeHeap._memory 0|CodeHeap._segmap 112|CodeHeap._log2_segment_size 248
GrowableArrayBase._len 0|GrowableArray<int>._data 8|StubQueue._stub_buffer 8|StubQueue._buffer_limit 20|StubQueue._queue_end 28
CodeBlob._name 8|CodeBlob._size 24|CodeBlob._frame_complete_offset 54|CodeBlob._frame_size 44|CodeBlob._code_offset 36
CodeBlob._relocation_size 28|CodeBlob._mutable_data 16|CodeBlob._mutable_data_size 48
nmethod._method 80|nmethod._deopt_handler_offset 176|nmethod._deopt_mh_handler_offset 180|nmethod._orig_pc_offset 208
nmethod._scopes_pcs_offset 196|nmethod._scopes_data_offset 200|nmethod._verified_entry_offset 154
nmethod._immutable_data 96|nmethod._immutable_data_size 160|nmethod._compile_id 212
HeapBlock::Header._used 4`

var sizes = map[uint64]string{
	17: "nmethod 352|ConstMethod 48|ConstantPool 72|HeapBlock 16",
	25: "nmethod 224|ConstMethod 56|ConstantPool 72|HeapBlock 8",
}

// jvm is a made up process with a HotSpot.
type jvm struct {
	*image
	version uint64
	library *Library
	// static variables
	statics map[string]uint64
}

// newJVM makes the tables and code heaps of a version, without what without names.
func newJVM(t testing.TB, version uint64, without string) *jvm {
	t.Helper()
	j := &jvm{image: &image{}, version: version, library: &Library{}, statics: map[string]uint64{}}
	fields := fields17
	if version == 25 {
		fields = fields25
	}
	for _, name := range []string{
		"Abstract_VM_Version._vm_major_version", "CodeCache._heaps", "AbstractInterpreter._code",
		"StubRoutines._call_stub_return_address", "ContinuationEntry._return_pc",
	} {
		j.statics[name] = j.alloc(8)
	}
	j.put(j.statics["Abstract_VM_Version._vm_major_version"], version, 4)
	j.heaps()
	entries := strings.FieldsFunc(fields, func(r rune) bool { return r == '|' || r == '\n' })
	structs := j.alloc(48 * (len(entries) + len(j.statics) + 1))
	at := structs
	add := func(name string, static, offset, addr uint64) {
		if name == without {
			return
		}
		typ, field, _ := strings.Cut(name, ".")
		j.put(at, j.text(typ), 8)
		j.put(at+8, j.text(field), 8)
		j.put(at+24, static, 4)
		j.put(at+32, offset, 8)
		j.put(at+40, addr, 8)
		at += 48
	}
	for _, e := range entries {
		name, offset, _ := strings.Cut(e, " ")
		add(name, 0, number(t, offset), 0)
	}
	for name, addr := range j.statics {
		add(name, 1, 0, addr)
	}
	types := j.alloc(40 * 8)
	for i, e := range strings.Split(sizesOf(version), "|") {
		name, size, _ := strings.Cut(e, " ")
		j.put(types+uint64(40*i), j.text(name), 8)
		j.put(types+uint64(40*i)+32, number(t, size), 8)
	}
	constants := j.alloc(16)
	for i, v := range [...]uint64{structs, 48, 0, 8, 24, 32, 40, types, 40, 0, 32, constants, 16, 0, 8} {
		j.library.symbols[i] = j.alloc(8)
		j.put(j.library.symbols[i], v, 8)
	}
	j.alloc(2 * pageBytes) // what is read by pages
	return j
}

func number(t testing.TB, s string) (n uint64) {
	t.Helper()
	for _, c := range s {
		require.True(t, c >= '0' && c <= '9', s)
		n = 10*n + uint64(c-'0')
	}
	return n
}

// Of the code heap.
const (
	heapStart = 0x7e0000000000
	heapLimit = heapStart + 1<<20
)

func (j *jvm) heaps() {
	memory, segments, shift := uint64(8), uint64(120), uint64(256)
	if j.version == 25 {
		memory, segments, shift = 0, 112, 248
	}
	heap := j.alloc(300)
	j.put(heap+memory, heapStart, 8)
	j.put(heap+memory+8, heapLimit, 8)
	j.put(heap+segments, 0x7e1000000000, 8)
	j.put(heap+shift, 7, 4)
	array, data := j.alloc(16), j.alloc(8)
	j.put(data, heap, 8)
	j.put(array, 1, 4)
	j.put(array+8, data, 8)
	j.put(j.statics["CodeCache._heaps"], array, 8)
	stubs := j.alloc(32)
	j.put(stubs+8, heapStart+0x1000, 8)
	j.put(stubs+20, 0x2000, 4)
	j.put(stubs+28, 0x2000, 4)
	j.put(j.statics["AbstractInterpreter._code"], stubs, 8)
	j.put(j.statics["StubRoutines._call_stub_return_address"], heapStart+0x800, 8)
}

// open opens the HotSpot.
func (j *jvm) open(t testing.TB) *process {
	t.Helper()
	p, err := j.library.Open(j, 0)
	require.NoError(t, err)
	return p.(*process)
}

// method makes a Method of a class, whose lines are those of a table.
func (j *jvm) method(p *process, class, name, file string, codeSize int, lines []byte) uint64 {
	klass := j.alloc(64)
	j.put(klass+uint64(p.klassName), j.symbol(class), 8)
	pool := j.alloc(p.poolEnd + 8*4)
	j.put(pool+uint64(p.poolHolder), klass, 8)
	j.put(pool+uint64(p.poolLength), 4, 4)
	j.put(pool+uint64(p.poolSourceFile), 2, 2)
	j.put(pool+uint64(p.poolEnd)+8, j.symbol(name), 8)
	j.put(pool+uint64(p.poolEnd)+16, j.symbol(file), 8)
	size := (p.constBytes + codeSize + len(lines) + 7) &^ 7
	constant := j.alloc(size)
	j.put(constant+uint64(p.constants), pool, 8)
	j.put(constant+uint64(p.constSize), uint64(size/8), 4)
	j.put(constant+uint64(p.constFlags), hasLineNumbers, 2)
	j.put(constant+uint64(p.codeSize), uint64(codeSize), 2)
	j.put(constant+uint64(p.nameIndex), 1, 2)
	copy(j.bytes[constant+uint64(p.constBytes+codeSize)-imageBase:], lines)
	method := j.alloc(88)
	j.put(method+uint64(p.constMethod), constant, 8)
	return method
}

// part is a code that a place of an nmethod has.
type part struct {
	pc, scope int
}

// nmethod makes compiled code of a method.
func (j *jvm) nmethod(p *process, name string, method uint64, methods []uint64, scopes []byte, parts []part) uint64 {
	var pcs []byte
	pcs = append(pcs, 0xff, 0xff, 0xff, 0xff)
	pcs = append(pcs, make([]byte, 12)...)
	for _, of := range parts {
		pcs = binary.LittleEndian.AppendUint32(pcs, uint32(of.pc))
		pcs = binary.LittleEndian.AppendUint32(pcs, uint32(of.scope))
		pcs = append(pcs, make([]byte, 8)...)
	}
	var metadata []byte
	for _, m := range methods {
		metadata = binary.LittleEndian.AppendUint64(metadata, m)
	}
	for len(scopes)%8 != 0 {
		scopes = append(scopes, 0)
	}
	total := uint64(p.blobBytes + len(metadata) + len(scopes) + len(pcs))
	block := uint64(p.record.BlockBytes)
	blob := j.alloc(int(block+total)) + block
	j.put(blob-block+uint64(p.blockUsed), 1, 1)
	j.put(blob+uint64(p.blobName), j.text(name), 8)
	j.put(blob+uint64(p.method), method, 8)
	j.put(blob+uint64(p.compileID), 77, 4)
	j.put(blob+uint64(p.blobSize), total, 4)
	at := uint64(p.blobBytes)
	put := func(b []byte) (from uint64) {
		from = at
		copy(j.bytes[blob+at-imageBase:], b)
		at += uint64(len(b))
		return from
	}
	if p.version == version25 {
		j.put(blob+uint64(p.mutable), blob+put(metadata), 8)
		j.put(blob+uint64(p.mutableSize), uint64(len(metadata)), 4)
		from := put(pcs)
		put(scopes)
		j.put(blob+uint64(p.immutable), blob+from, 8)
		j.put(blob+uint64(p.immutableSize), at-from, 4)
		j.put(blob+uint64(p.scopesPCs), 0, 4)
		j.put(blob+uint64(p.scopesData), uint64(len(pcs)), 4)
		return blob
	}
	j.put(blob+uint64(p.metadata), put(metadata), 4)
	j.put(blob+uint64(p.scopesData), blob+put(scopes), 8)
	j.put(blob+uint64(p.scopesPCs), put(pcs), 4)
	j.put(blob+uint64(p.dependencies), at, 4)
	return blob
}

// numbers codes small numbers.
func numbers(p *process, values ...byte) (b []byte) {
	for _, v := range values {
		b = append(b, v+p.excess())
	}
	return b
}

// codeOf codes a number of any size.
func codeOf(p *process, v int) (b []byte) {
	for limit := highCode - int(p.excess()); v >= limit; {
		low := (v - limit) & 63
		b = append(b, byte(highCode+low))
		v = (v - limit - low) >> 6
	}
	return append(b, byte(v)+p.excess())
}

// frameOf is the cookie of an object as the sampling programs make it.
func (p *process) frameOf(m *image, object uint64) (uint64, uint32) {
	r := &reader{mem: m}
	return object, p.blob(r, object).cookie
}

func (p *process) frameOfMethod(m *image, method uint64) (uint64, uint32) {
	h := p.head(&reader{mem: m}, method)
	return method | record.HotSpotMethod, h.cookie
}

func sizesOf(version uint64) string {
	if version == version25 {
		return sizes[version25]
	}
	return sizes[version17]
}
