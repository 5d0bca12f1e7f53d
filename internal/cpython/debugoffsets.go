package cpython

import (
	"errors"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// cookie begins _Py_DebugOffsets.
const cookie = "xdebugpy"

// Of _Py_DebugOffsets, as many bytes are read as the last one that is needed takes.
const debugOffsetsBytes = 8 * 96

// debugWords are the numbers of words in _Py_DebugOffsets, which begins with the cookie.
type debugWords struct {
	interpretersHead                                  int
	interpreterNext, threadsHead                      int
	threadNext, currentFrame, nativeThreadID          int
	framePrevious, frameCode, frameInstruction, owner int
	filename, qualname, linetable, firstLine, code    int
	objectType, bytesSize, bytesText                  int
	textState, textLength, asciiBytes                 int
}

// Words that all versions have at the same place.
const (
	debugVersion      = 1
	debugFreeThreaded = 2
)

// debugWords313 are those of 3.13, debugWords314 those of 3.14.
func debugWords313() debugWords {
	return debugWords{
		interpretersHead: 5,
		interpreterNext:  8, threadsHead: 9,
		threadNext: 21, currentFrame: 23, nativeThreadID: 25,
		framePrevious: 29, frameCode: 30, frameInstruction: 31, owner: 33,
		filename: 35, qualname: 37, linetable: 38, firstLine: 39, code: 43,
		objectType: 45, bytesSize: 65, bytesText: 66,
		textState: 68, textLength: 69, asciiBytes: 70,
	}
}

func debugWords314() debugWords {
	return debugWords{
		interpretersHead: 5,
		interpreterNext:  8, threadsHead: 9,
		threadNext: 24, currentFrame: 26, nativeThreadID: 28,
		framePrevious: 32, frameCode: 33, frameInstruction: 34, owner: 36,
		filename: 40, qualname: 42, linetable: 43, firstLine: 44, code: 48,
		objectType: 51, bytesSize: 75, bytesText: 76,
		textState: 78, textLength: 79, asciiBytes: 80,
	}
}

// errFreeThreaded says that a build has no global interpreter lock. In 3.14 its threads have
// copies of instructions of their own (co_tlbc).
var errFreeThreaded = errors.New("free-threaded build of CPython 3.14")

// Bounds of offsets: far more than any version has.
const (
	maxInterpreterOffset = 1 << 20
	maxRuntimeOffset     = 1 << 20
)

// processOf reads a _Py_DebugOffsets that a file of this version has.
func processOf(block []byte, version uint64) (p record.PythonProcess, err error) {
	if len(block) < debugOffsetsBytes || string(block[:len(cookie)]) != cookie {
		return p, fmt.Errorf("%w: no _Py_DebugOffsets", langruntime.ErrUnreadable)
	}
	at := func(n int) uint64 { return word(block, 8*n) }
	if v := at(debugVersion); v != version {
		return p, fmt.Errorf("%w: _Py_DebugOffsets of version %#x, not %#x", langruntime.ErrUnreadable, v, version)
	}
	w, typeAt := debugWords313(), uint64(objectType)
	if version>>16 == version314 {
		w = debugWords314()
	}
	switch v := at(debugFreeThreaded); {
	case v == 0:
	case v == 1 && version>>16 == version313:
		typeAt = objectTypeFreeThreaded
	case v == 1:
		return p, fmt.Errorf("%w: %w", langruntime.ErrUnsupported, errFreeThreaded)
	default:
		return p, fmt.Errorf("%w: free_threaded %d in _Py_DebugOffsets", langruntime.ErrUnreadable, v)
	}
	// offset checks one: of a field of so many bytes in a part of a struct.
	offset := func(n int, bytes, limit uint64) uint64 {
		v := at(n)
		if err == nil && (v%bytes != 0 || v > limit-bytes) {
			err = fmt.Errorf("%w: offset %d in _Py_DebugOffsets: %d", langruntime.ErrUnreadable, n, v)
		}
		return v
	}
	code := offset(w.code, 8, record.PythonCodeBytes+8)
	if err == nil && code < typeAt+16 { // it is a PyVarObject
		err = fmt.Errorf("%w: code objects of %d bytes", langruntime.ErrUnreadable, code)
	}
	inCode := func(n int, bytes uint64) uint16 { return uint16(offset(n, bytes, max(code, bytes))) }
	inFrame := func(n int, bytes uint64) uint8 { return uint8(offset(n, bytes, record.PythonFrameBytes)) }
	ascii := offset(w.asciiBytes, 8, 128)
	p = record.PythonProcess{
		Interpreters:       offset(w.interpretersHead, 8, maxRuntimeOffset),
		InterpreterNext:    uint32(offset(w.interpreterNext, 8, maxInterpreterOffset)),
		InterpreterThreads: uint32(offset(w.threadsHead, 8, maxInterpreterOffset)),
		ThreadNext:         uint16(offset(w.threadNext, 8, record.PythonThreadBytes)),
		ThreadNativeID:     uint16(offset(w.nativeThreadID, 8, record.PythonThreadBytes)),
		ThreadFrame:        uint16(offset(w.currentFrame, 8, record.PythonThreadBytes)),
		FrameCode:          inFrame(w.frameCode, 8),
		FramePrevious:      inFrame(w.framePrevious, 8),
		FrameInstruction:   inFrame(w.frameInstruction, 8),
		FrameOwner:         inFrame(w.owner, 1),
		CodeBytes:          uint16(code),
		CodeFilename:       inCode(w.filename, 8),
		CodeQualname:       inCode(w.qualname, 8),
		CodeLinetable:      inCode(w.linetable, 8),
		CodeFirstLine:      inCode(w.firstLine, 4),
		TextOffset:         uint8(ascii),
		WideOffset:         uint8(ascii + 16), // utf8_length and utf8 of PyCompactUnicodeObject
		ObjectType:         uint8(typeAt),
	}
	for n, want := range map[int]uint64{
		w.objectType: typeAt, w.bytesSize: typeAt + 8, w.bytesText: typeAt + 8 + bytesText,
		w.textLength: typeAt + 8, w.textState: typeAt + 8 + textState,
	} {
		if v := at(n); err == nil && v != want {
			err = fmt.Errorf("%w: offset %d in _Py_DebugOffsets: %d, not %d", langruntime.ErrUnreadable, n, v, want)
		}
	}
	return p, err
}
