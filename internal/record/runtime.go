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
// user stack: RUNTIME_FRAME of runtime.h. The second is the address of the object that tells
// what runs.
type RuntimeWord uint64

const runtimeFrame = 1 << 63

// Places of the parts of a RuntimeWord, in bits.
const (
	RuntimeKindShift   = 56
	RuntimeCookieShift = 24 // and the number of bits of the position
)

// NewRuntimeWord makes one as the BPF programs do, for tests; of position, the lower 24 bits count.
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
	ObjectType         uint8    // PyObject.ob_type, the last field of an object's header
	Pad                [5]uint8 // 0
}

// What the lower bits of the object of HotSpot's frames say: HOTSPOT_CODE, HOTSPOT_METHOD.
const (
	HotSpotCode   = 0
	HotSpotMethod = 1
	// HotSpotInHeap is the position of a stub in whose place there are frames of a virtual
	// thread that are in the heap: HOTSPOT_IN_HEAP.
	HotSpotInHeap = 1
)

// HotSpotHeap is a range of code that HotSpot makes: struct hotspot_heap.
type HotSpotHeap struct {
	Start, Limit uint64
	Segments     uint64 // address of its segment map
}

// HotSpotProcess says where a HotSpot keeps what its stacks are made of: struct hotspot_process.
// What is not an address is an offset in the structs that it names itself.
type HotSpotProcess struct {
	Low, High          uint64 // of all heaps
	Interpreter        uint64
	InterpreterLimit   uint64
	CallStubReturn     uint64 // where the call stub goes on
	ContinuationReturn uint64 // address of the variable with that of Continuation.enter's stub; 0: not known
	Heaps              [MaxHotSpotHeaps]HotSpotHeap
	BlobName           uint16 // of CodeBlob
	BlobSize           uint16
	BlobFrameSize      uint16
	BlobFrameComplete  uint16
	BlobCode           uint16
	Method             uint16 // of nmethod
	CompileID          uint16
	VerifiedEntry      uint16
	DeoptHandler       uint16
	DeoptMHHandler     uint16
	OrigPC             uint16
	ConstMethod        uint16 // of Method
	Constants          uint16 // of ConstMethod
	ConstBytes         uint16 // its size: bytecodes follow
	CodeSize           uint16
	NameIndex          uint16
	SignatureIndex     uint16
	IDNum              uint16
	PoolHolder         uint16 // of ConstantPool
	KlassName          uint16 // of Klass
	SegmentShift       uint8  // log2 of the bytes of a segment
	BlockBytes         uint8  // of a heap block before its CodeBlob
	BytecodeSlot       uint8  // bytes below an interpreted frame's pointer
	Relative           uint8  // 25: places in code are offsets instead of addresses
	SenderX19          uint8  // aarch64: a method begins with its caller's stack pointer in x19, not in x13
	Pad                [3]uint8
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
	Builtin        uint8 // kind of the code of builtins
}

// RuntimeProcess is the language runtime of a process: struct runtime_process.
type RuntimeProcess struct {
	Kind    RuntimeKind
	Pad     uint32 // 0
	Seal    uint64 // package bpf fills it in
	Python  PythonProcess
	HotSpot HotSpotProcess
	V8      V8Process
}
