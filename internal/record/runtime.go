package record

// RuntimeKind is a language runtime: enum runtime_kind.
type RuntimeKind uint32

// The runtimes whose frames are told apart.
const (
	RuntimeNone RuntimeKind = iota
	RuntimeCPython
	RuntimeHotSpot
	RuntimeV8

	// NumRuntimes is the number of values, for arrays indexed by RuntimeKind.
	NumRuntimes = iota
)

var runtimeNames = [NumRuntimes]string{"none", "cpython", "jvm", "v8js"}

// String returns the name used in metrics, logs and for profile.frame.type.
func (k RuntimeKind) String() string {
	if k >= NumRuntimes {
		return "unknown"
	}
	return runtimeNames[k]
}

// A RuntimeWord is the first of the two words that a frame of a language runtime has in a
// user stack: RUNTIME_FRAME of record.h. The second is the address of the object that tells
// what runs.
type RuntimeWord uint64

const runtimeFrame = 1 << 63

// Places of the parts of a RuntimeWord, in bits.
const (
	RuntimeKindShift   = 56
	RuntimeCookieShift = 24 // and the number of bits of the position
)

// NewRuntimeWord makes one; of position, the lower 24 bits count.
func NewRuntimeWord(kind RuntimeKind, cookie, position uint32) RuntimeWord {
	return RuntimeWord(runtimeFrame | uint64(kind)<<RuntimeKindShift |
		uint64(cookie)<<RuntimeCookieShift | uint64(position&(1<<RuntimeCookieShift-1)))
}

// RuntimeWordOf tells whether a word of a user stack begins a frame of a runtime. Addresses
// do not: those of user space have no upper bits, others have all.
func RuntimeWordOf(word uint64) (w RuntimeWord, ok bool) {
	kind := RuntimeWord(word).Kind()
	return RuntimeWord(word), word >= runtimeFrame && kind != RuntimeNone && kind < NumRuntimes
}

// Kind of the runtime.
func (w RuntimeWord) Kind() RuntimeKind { return RuntimeKind(w >> RuntimeKindShift & 0x7f) }

// Cookie tells the object from others at its address.
func (w RuntimeWord) Cookie() uint32 { return uint32(w >> RuntimeCookieShift) }

// Position in what runs, as the runtime has it; 0: not known.
func (w RuntimeWord) Position() uint32 { return uint32(w & (1<<RuntimeCookieShift - 1)) }

// PythonProcess says where a CPython keeps what its stacks are made of: struct
// python_process. Offsets are in the structs of its headers.
type PythonProcess struct {
	Interpreters       uint64 // address of the pointer to the first PyInterpreterState
	CodeType           uint64 // address of PyCode_Type
	InterpreterNext    uint32
	InterpreterThreads uint32
	ThreadNext         uint16
	ThreadNativeID     uint16
	ThreadFrame        uint16 // of the current frame, or of the current _PyCFrame
	CodeBytes          uint16 // of PyCodeObject before its instructions
	CodeFilename       uint16
	CodeQualname       uint16
	CodeLinetable      uint16
	CodeFirstLine      uint16
	ByCframe           uint8 // 3.11, 3.12: the current frame is in a _PyCFrame
	CframeCurrent      uint8
	CframePrevious     uint8
	FrameEntry         uint8 // 3.11: is_entry; else 0
	FrameCode          uint8
	FramePrevious      uint8
	FrameInstruction   uint8
	FrameOwner         uint8
	TextOffset         uint8    // of the characters of a compact ASCII string
	WideOffset         uint8    // of those of another compact string
	Pad                [6]uint8 // 0
}

// V8Process says where a V8 keeps what its stacks are made of: struct v8_process. Types are
// those of objects' maps; the others are offsets in objects.
type V8Process struct {
	FunctionFirst  uint16 // types of JSFunctions
	FunctionLast   uint16
	SharedType     uint16 // SharedFunctionInfo
	ScriptType     uint16
	BytecodeType   uint16 // BytecodeArray
	CodeType       uint16
	StreamType     uint16 // InstructionStream
	ListType       uint16 // the deoptimization data of a Code
	FunctionShared uint8
	SharedData     uint8
	SharedBuiltin  uint8
	SharedName     uint8
	SharedScript   uint8
	SharedLiteral  uint8
	CodeDeopt      uint8
	CodeStart      uint8
	CodeFlags      uint8
	CodeSize       uint8
	StreamHeader   uint8 // bytes before the instructions
	DeoptShared    uint8 // in the deoptimization data
	SharedWrapped  uint8 // that is a SharedFunctionInfoWrapper
	Baseline       uint8 // kind of baseline code; those of optimizing compilers follow
	BytecodeHeader uint8 // bytes of a BytecodeArray before its instructions
	Pad            uint8 // 0
}

// RuntimeProcess is the language runtime of a process: struct runtime_process.
type RuntimeProcess struct {
	Kind   RuntimeKind
	Owner  uint32 // TGID
	Python PythonProcess
	V8     V8Process
}
