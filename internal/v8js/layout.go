package v8js

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Layout is where a V8 in a file has what its stacks are made of. It implements
// langruntime.Runtime.
type Layout struct {
	version version
	release release
	types   types
	process record.V8Process
}

var _ langruntime.Runtime = (*Layout)(nil)

// Mangled names of v8::internal::Version::major_ and minor_, which are ints.
const (
	majorSymbol = "_ZN2v88internal7Version6major_E"
	minorSymbol = "_ZN2v88internal7Version6minor_E"
)

// types are those of objects that user space reads.
type types struct {
	shared, script, scopeInfo                uint16
	bytecode, interpreterData, code          uint16
	fixedArray, byteArray, trustedByteArray  uint16
	weakArray, trustedWeakArray, sharedInner uint16
}

// LayoutOf returns the V8 in a file. The error is langruntime.ErrNone if there is none, or
// wraps langruntime.ErrUnsupported, or tells what is wrong with the file.
func LayoutOf(e *elffile.File) (*Layout, error) {
	m := metadata{file: e}
	v := version{m.optional(majorSymbol, -1), m.optional(minorSymbol, -1)}
	if m.err != nil {
		return nil, m.err
	}
	if v.major < 0 {
		return nil, langruntime.ErrNone
	}
	r, ok := releaseOf(v)
	if !ok {
		return nil, fmt.Errorf("%w: V8 %s", langruntime.ErrUnsupported, v)
	}
	if e.Machine == elf.EM_AARCH64 && !r.aarch64 {
		return nil, fmt.Errorf("%w: V8 %s on %v", langruntime.ErrUnsupported, v, e.Machine)
	}
	l := &Layout{version: v, release: r}
	for name, want := range r.expected() {
		m.want(name, want)
	}
	l.types = m.types(&r)
	l.process = r.process(&m, &l.types)
	if m.err != nil {
		return nil, m.err
	}
	return l, nil
}

// metadata reads ints that an executable exports. Its error is the first.
type metadata struct {
	file *elffile.File
	err  error
}

// optional returns the initial value of an exported int, or another value if there is none.
func (m *metadata) optional(name string, without int32) int32 {
	if m.err != nil {
		return without
	}
	sym, ok, err := m.file.DynamicSymbol(name)
	if err != nil {
		m.err = fmt.Errorf("find %s: %w", name, err)
		return without
	}
	if !ok || !sym.Defined() {
		return without
	}
	var b [4]byte
	if err := m.file.ReadVaddr(b[:], sym.Value); err != nil {
		m.err = fmt.Errorf("read %s: %w", name, err)
		return without
	}
	return int32(binary.LittleEndian.Uint32(b[:]))
}

// instanceType returns a type of objects, by the part of a symbol between v8dbg_type_ and _TYPE.
func (m *metadata) instanceType(name string) uint16 {
	v := m.optional("v8dbg_type_"+name+"_TYPE", -1)
	if m.err == nil && (v <= 0 || v > 1<<16-1) {
		m.err = fmt.Errorf("%w: V8 without the type %s", langruntime.ErrUnsupported, name)
	}
	return uint16(v)
}

// want makes sure that a value is the one that the release has.
func (m *metadata) want(name string, want int32) {
	got := m.optional("v8dbg_"+name, -1<<31)
	if m.err == nil && got != want {
		m.err = fmt.Errorf("%w: V8 whose v8dbg_%s is %d, not %d", langruntime.ErrUnsupported, name, got, want)
	}
}

func (m *metadata) types(r *release) types {
	t := types{
		shared:          m.instanceType("SharedFunctionInfo__SHARED_FUNCTION_INFO"),
		script:          m.instanceType("Script__SCRIPT"),
		scopeInfo:       m.instanceType("ScopeInfo__SCOPE_INFO"),
		bytecode:        m.instanceType("BytecodeArray__BYTECODE_ARRAY"),
		interpreterData: m.instanceType("InterpreterData__INTERPRETER_DATA"),
		code:            m.instanceType("Code__CODE"),
		fixedArray:      m.instanceType("FixedArray__FIXED_ARRAY"),
		byteArray:       m.instanceType("ByteArray__BYTE_ARRAY"),
		weakArray:       m.instanceType("WeakFixedArray__WEAK_FIXED_ARRAY"),
	}
	t.trustedByteArray, t.trustedWeakArray = t.byteArray, t.weakArray
	if r.trusted {
		t.trustedByteArray = m.instanceType("TrustedByteArray__TRUSTED_BYTE_ARRAY")
	}
	if r.wrapped {
		t.trustedWeakArray = m.instanceType("TrustedWeakFixedArray__TRUSTED_WEAK_FIXED_ARRAY")
		t.sharedInner = m.instanceType("SharedFunctionInfoWrapper__SHARED_FUNCTION_INFO_WRAPPER")
	}
	return t
}

// Kind implements langruntime.Runtime.
func (*Layout) Kind() record.RuntimeKind { return record.RuntimeV8 }
