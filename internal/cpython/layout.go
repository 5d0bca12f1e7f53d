package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Layout is where a CPython in a file has what its stacks are made of. It implements
// langruntime.Runtime.
type Layout struct {
	version uint64 // PY_VERSION_HEX
	// process has virtual addresses of the file instead of addresses.
	process record.PythonProcess
}

var _ langruntime.Runtime = (*Layout)(nil)

// Versions whose structs are known, by PY_VERSION_HEX >> 16.
const (
	version311 = 0x030b
	version312 = 0x030c
	version313 = 0x030d
	version314 = 0x030e

	finalRelease = 0xf // PY_RELEASE_LEVEL_FINAL
)

// LayoutOf returns the CPython in a file. The error is langruntime.ErrNone if there is none, or
// wraps langruntime.ErrUnsupported or ErrUnreadable, or tells what is wrong with the file.
func LayoutOf(e *elffile.File) (*Layout, error) {
	runtime, ok, err := e.DynamicSymbol("_PyRuntime")
	if err != nil || !ok || !runtime.Defined() {
		return nil, errors.Join(langruntime.ErrNone, err)
	}
	code, ok, err := e.DynamicSymbol("PyCode_Type")
	if err != nil || !ok || !code.Defined() {
		return nil, errors.Join(langruntime.ErrNone, err)
	}
	number, ok, err := e.DynamicSymbol("Py_Version")
	if err != nil {
		return nil, fmt.Errorf("find version of CPython: %w", err)
	}
	if !ok || !number.Defined() {
		return nil, fmt.Errorf("%w: CPython before 3.11", langruntime.ErrUnsupported)
	}
	l := &Layout{}
	if l.version, err = e.ReadWord(number.Value); err != nil {
		return nil, fmt.Errorf("%w: read version of CPython: %w", langruntime.ErrUnreadable, err)
	}
	if err := l.fill(e, runtime.Value); err != nil {
		return nil, err
	}
	l.process.CodeType = code.Value
	l.process.Interpreters += runtime.Value
	return l, nil
}

// fill sets the offsets. Interpreters is that in _PyRuntime.
func (l *Layout) fill(e *elffile.File, runtime uint64) error {
	if l.version>>4&0xf != finalRelease || l.version>>32 != 0 {
		return fmt.Errorf("%w: CPython %s", langruntime.ErrUnsupported, l.Version())
	}
	switch l.version >> 16 {
	case version311:
		l.process = process311()
		return nil
	case version312:
		l.process = process312()
		return nil
	case version313, version314:
		block := make([]byte, debugOffsetsBytes)
		if err := e.ReadVaddr(block, runtime); err != nil {
			return fmt.Errorf("%w: read _Py_DebugOffsets: %w", langruntime.ErrUnreadable, err)
		}
		var err error
		l.process, err = processOf(block, l.version)
		return err
	}
	return fmt.Errorf("%w: CPython %s", langruntime.ErrUnsupported, l.Version())
}

// process311 has the structs of 3.11.
func process311() record.PythonProcess {
	return record.PythonProcess{
		Interpreters:       40, // _PyRuntimeState.interpreters.head
		InterpreterNext:    0,
		InterpreterThreads: 16, // threads.head
		ThreadNext:         8,
		ThreadNativeID:     160,
		ThreadFrame:        56, // cframe
		ByCframe:           1,
		CframeCurrent:      8,
		CframePrevious:     16,
		FrameCode:          32,
		FramePrevious:      48,
		FrameInstruction:   56, // prev_instr
		FrameEntry:         68,
		FrameOwner:         69,
		CodeBytes:          184, // co_code_adaptive
		CodeFilename:       112,
		CodeQualname:       128,
		CodeLinetable:      136,
		CodeFirstLine:      72,
		TextOffset:         48,
		WideOffset:         72,
		ObjectType:         objectType,
	}
}

// process312 has those of 3.12.
func process312() record.PythonProcess {
	return record.PythonProcess{
		Interpreters:       40,
		InterpreterNext:    0,
		InterpreterThreads: 72,
		ThreadNext:         8,
		ThreadNativeID:     144,
		ThreadFrame:        56,
		ByCframe:           1,
		CframeCurrent:      0,
		CframePrevious:     8,
		FrameCode:          0,
		FramePrevious:      8,
		FrameInstruction:   56,
		FrameOwner:         70,
		CodeBytes:          192,
		CodeFilename:       112,
		CodeQualname:       128,
		CodeLinetable:      136,
		CodeFirstLine:      68,
		TextOffset:         40,
		WideOffset:         56,
		ObjectType:         objectType,
	}
}

// Kind implements langruntime.Runtime.
func (*Layout) Kind() record.RuntimeKind { return record.RuntimeCPython }

// Version is that of the CPython.
func (l *Layout) Version() string {
	return fmt.Sprintf("%d.%d.%d", l.version>>24&0xff, l.version>>16&0xff, l.version>>8&0xff)
}

// Open implements langruntime.Runtime: the file says all.
func (l *Layout) Open(_ langruntime.Memory, bias uint64) (langruntime.Process, error) {
	p := &process{*l}
	p.process.Interpreters += bias
	p.process.CodeType += bias
	return p, nil
}

// process is the CPython of a process: its layout has addresses.
type process struct{ Layout }

// Record implements langruntime.Process.
func (p *process) Record() record.RuntimeProcess {
	return record.RuntimeProcess{Kind: record.RuntimeCPython, Python: p.process}
}

func word(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
