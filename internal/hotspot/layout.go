package hotspot

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Library is a HotSpot in a file. It implements langruntime.Runtime.
type Library struct {
	symbols [len(tableSymbols)]uint64 // virtual addresses
	machine elf.Machine
}

var _ langruntime.Runtime = (*Library)(nil)

// LibraryOf returns the HotSpot in a file. The error is langruntime.ErrNone if there is none, or
// wraps langruntime.ErrUnreadable, or tells what is wrong with the file.
func LibraryOf(e *elffile.File) (*Library, error) {
	sym, ok, err := e.DynamicSymbol(tableSymbols[0])
	if err != nil || !ok || !sym.Defined() {
		return nil, errors.Join(langruntime.ErrNone, err)
	}
	l := &Library{machine: e.Machine}
	if l.symbols, err = symbolValues(e); err != nil {
		return nil, err
	}
	return l, nil
}

// Kind implements langruntime.Runtime.
func (*Library) Kind() record.RuntimeKind { return record.RuntimeHotSpot }

// Open implements langruntime.Runtime.
func (l *Library) Open(mem langruntime.Memory, bias uint64) (langruntime.Process, error) {
	symbols := l.symbols
	for i := range symbols {
		symbols[i] += bias
	}
	t, err := readTables(mem, symbols)
	if err != nil {
		return nil, err
	}
	return open(mem, t, l.machine)
}

// Versions whose structs are known.
const (
	version17 = 17
	version21 = 21
	version25 = 25
)

// process is the HotSpot of a process: where its structs have what is read.
type process struct {
	record record.HotSpotProcess

	version uint64
	// Offsets, of nmethod where nothing else is said.
	blobName, blobSize                             int
	method, compileID                              int
	metadata, dependencies, scopesPCs, scopesData  int
	immutable, immutableSize, mutable, mutableSize int // 25
	relocationSize                                 int // 25
	blobBytes                                      int // of the struct
	blockUsed                                      int // of HeapBlock

	constMethod                                     int // of Method
	constants, constSize, constFlags, codeSize      int // of ConstMethod
	nameIndex, signatureIndex, idnum, constBytes    int
	poolHolder, poolLength, poolSourceFile, poolEnd int // of ConstantPool
	klassName                                       int // of Klass
	symbolLength, symbolBody                        int // of Symbol
}

// fields takes offsets from tables, and remembers what is missing.
type fields struct {
	*tables
	missing string
}

func (f *fields) find(in map[string]uint64, name string, most uint64) int {
	v, ok := in[name]
	if !ok || v > most {
		if f.missing == "" {
			f.missing = name
		}
		return 0
	}
	return int(v)
}

// maxOffset is behind any field that is read.
const maxOffset = 4096

// of returns the offset of the field that one of these names has.
func (f *fields) of(names ...string) int {
	for _, name := range names {
		if _, ok := f.offsets[name]; ok {
			return f.find(f.offsets, name, maxOffset)
		}
	}
	return f.find(f.offsets, names[0], maxOffset)
}

func (f *fields) size(name string) int { return f.find(f.sizes, name, maxOffset) }

func (f *fields) static(name string) uint64 {
	return uint64(f.find(f.statics, name, 1<<63-1))
}

// open finds out where a process has what is read.
func open(mem langruntime.Memory, t *tables, machine elf.Machine) (*process, error) {
	f := &fields{tables: t}
	p := &process{}
	var err error
	if p.version, err = readUint(mem, f.static("Abstract_VM_Version._vm_major_version"), 4); err != nil {
		return nil, fmt.Errorf("read version of HotSpot: %w", err)
	}
	switch p.version {
	case version17, version21, version25:
	default:
		return nil, fmt.Errorf("%w: HotSpot %d", langruntime.ErrUnsupported, p.version)
	}
	p.places(f)
	if f.missing != "" {
		return nil, p.lacks(f)
	}
	p.fillRecord(f)
	p.record.BytecodeSlot = bytecodeSlot(machine)
	if p.version != version17 {
		p.record.SenderX19 = 1
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := p.findHeaps(mem, f); err != nil {
		return nil, err
	}
	if f.missing != "" {
		return nil, p.lacks(f)
	}
	return p, nil
}

// lacks is the error of tables without a field. It may only not be there yet: while the loader
// goes through a file, its tables seem to end where it has come to.
func (p *process) lacks(f *fields) error {
	return fmt.Errorf("%w: HotSpot %d without %s", langruntime.ErrStarting, p.version, f.missing)
}

// places sets the offsets that this package reads by.
func (p *process) places(f *fields) {
	p.blobName, p.blobSize = f.of("CodeBlob._name"), f.of("CodeBlob._size")
	p.method = f.of("nmethod._method", "CompiledMethod._method")
	p.compileID = f.of("nmethod._compile_id")
	p.scopesPCs = f.of("nmethod._scopes_pcs_offset")
	if p.version == version25 {
		p.relocationSize = f.of("CodeBlob._relocation_size")
		p.mutable, p.mutableSize = f.of("CodeBlob._mutable_data"), f.of("CodeBlob._mutable_data_size")
		p.immutable, p.immutableSize = f.of("nmethod._immutable_data"), f.of("nmethod._immutable_data_size")
		p.scopesData = f.of("nmethod._scopes_data_offset")
	} else {
		p.metadata, p.dependencies = f.of("nmethod._metadata_offset"), f.of("nmethod._dependencies_offset")
		p.scopesData = f.of("CompiledMethod._scopes_data_begin")
	}
	p.blobBytes = f.size("nmethod")
	p.blockUsed = f.of("HeapBlock::Header._used")
	p.constMethod = f.of("Method._constMethod")
	p.constants, p.constSize = f.of("ConstMethod._constants"), f.of("ConstMethod._constMethod_size")
	p.codeSize, p.nameIndex = f.of("ConstMethod._code_size"), f.of("ConstMethod._name_index")
	p.signatureIndex, p.idnum = f.of("ConstMethod._signature_index"), f.of("ConstMethod._method_idnum")
	p.constBytes = f.size("ConstMethod")
	p.constFlags = f.of("ConstMethod._flags", "ConstMethod._flags._flags")
	p.poolHolder, p.poolLength = f.of("ConstantPool._pool_holder"), f.of("ConstantPool._length")
	p.poolSourceFile, p.poolEnd = f.of("ConstantPool._source_file_name_index"), f.size("ConstantPool")
	p.klassName = f.of("Klass._name")
	p.symbolLength, p.symbolBody = f.of("Symbol._length"), f.of("Symbol._body")
}

// check makes sure that fields lie in their structs, and these in what is read of them.
func (p *process) check() error {
	r := &p.record
	blob := [...]int{
		p.blobName, p.blobSize, p.method, p.compileID, p.metadata, p.dependencies, p.scopesPCs, p.scopesData,
		p.immutable, p.immutableSize, p.mutable, p.mutableSize, p.relocationSize,
		int(r.BlobFrameSize), int(r.BlobFrameComplete), int(r.BlobCode), int(r.OrigPC), int(r.VerifiedEntry),
		int(r.DeoptHandler), int(r.DeoptMHHandler),
	}
	constant := [...]int{p.constants, p.constSize, p.constFlags, p.codeSize, p.nameIndex, p.signatureIndex, p.idnum}
	pool := [...]int{p.poolHolder, p.poolLength, p.poolSourceFile}
	for _, of := range [...]struct {
		offsets     []int
		bytes, most int
	}{
		{blob[:], p.blobBytes, record.HotSpotBlobBytes},
		{constant[:], p.constBytes, record.HotSpotConstBytes},
		{pool[:], p.poolEnd, maxOffset},
		{[]int{p.blockUsed}, int(r.BlockBytes), math.MaxUint8},
	} {
		if of.bytes > of.most || slices.Max(of.offsets) >= of.bytes {
			return fmt.Errorf("%w: HotSpot %d whose structs have %d bytes", langruntime.ErrStarting, p.version, of.bytes)
		}
	}
	return nil
}

// bytecodeSlot is how many bytes below an interpreted frame's pointer the place of its bytecode is.
func bytecodeSlot(machine elf.Machine) uint8 {
	if machine == elf.EM_AARCH64 {
		return 72
	}
	return 64
}

// fillRecord sets what the sampling programs read by, but for the heaps.
func (p *process) fillRecord(f *fields) {
	r := &p.record
	r.BlobName, r.BlobSize, r.BlobFrameSize = uint16(p.blobName), uint16(p.blobSize), uint16(f.of("CodeBlob._frame_size"))
	r.BlobFrameComplete, r.BlobCode = uint16(f.of("CodeBlob._frame_complete_offset")), uint16(f.of("CodeBlob._code_begin", "CodeBlob._code_offset"))
	r.Method, r.CompileID = uint16(p.method), uint16(p.compileID)
	r.OrigPC = uint16(f.of("nmethod._orig_pc_offset"))
	if p.version == version25 {
		r.Relative = 1
		r.VerifiedEntry = uint16(f.of("nmethod._verified_entry_offset"))
		r.DeoptHandler, r.DeoptMHHandler = uint16(f.of("nmethod._deopt_handler_offset")), uint16(f.of("nmethod._deopt_mh_handler_offset"))
		r.ContinuationReturn = f.static("ContinuationEntry._return_pc")
	} else {
		r.VerifiedEntry = uint16(f.of("nmethod._verified_entry_point"))
		r.DeoptHandler = uint16(f.of("CompiledMethod._deopt_handler_begin"))
		r.DeoptMHHandler = uint16(f.of("CompiledMethod._deopt_mh_handler_begin"))
	}
	r.ConstMethod, r.Constants, r.ConstBytes = uint16(p.constMethod), uint16(p.constants), uint16(p.constBytes)
	r.CodeSize, r.NameIndex = uint16(p.codeSize), uint16(p.nameIndex)
	r.SignatureIndex, r.IDNum = uint16(p.signatureIndex), uint16(p.idnum)
	r.PoolHolder, r.KlassName = uint16(p.poolHolder), uint16(p.klassName)
	r.BlockBytes = uint8(f.size("HeapBlock"))
}

// Kind implements langruntime.Process.
func (*process) Kind() record.RuntimeKind { return record.RuntimeHotSpot }

// Record implements langruntime.Process.
func (p *process) Record() record.RuntimeProcess {
	return record.RuntimeProcess{Kind: record.RuntimeHotSpot, HotSpot: p.record}
}
