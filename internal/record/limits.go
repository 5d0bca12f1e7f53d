package record

// Limits of record.h.
const (
	MaxLabelSources      = 4     // of one process
	MaxLabels            = 64    // live labels copied from one label set
	MaxLabelSlots        = 512   // slots of one label set examined, holes included
	MaxLabelKeyBytes     = 256   // of one key
	MaxLabelValueBytes   = 1024  // of one value
	MaxContextAttrsBytes = 2048  // attrs-data of a thread context record
	MaxLabelBytes        = 8192  // the label section of one sample, heads of its blocks included
	MaxLabelEnd          = 8144  // where labels end in it: the blocks of all sources have room
	MaxSlotEnd           = 8064  // and those of sets: ids of a thread context behind all of them have room
	MaxNodeJSBuckets     = 65536 // of the hash table of an async context; a power of 2
	MaxNodeJSChain       = 64    // entries of one bucket examined
	MaxKernelFrames      = 128
	MaxUserFrames        = 1024
	MaxUnwindTables      = 8192 // at the same time
	MaxUnwindMappings    = 1024 // with rows, of one process
	UnwindChunkMappings  = 16   // in one element of unwind_mappings
	UnwindBlockBytes     = 1024 // of text that share an index entry
	UnwindPageBytes      = 4096 // one element of an unwind table
	MaxFileRows          = 4096 // files whose rows are found without a list of mappings
	MaxFileTexts         = 4    // executable segments of such a file
	MaxPrograms          = 1024 // executables whose processes begin with label sources
	MaxPlainPrograms     = 2048 // executables whose processes have none
	MaxRuntimes          = 2048 // processes with a language runtime
	MaxPythonFrames      = 512  // of one thread that are recorded
	MaxPythonEvaluations = 256  // native ones, of one thread
	MaxPythonThreads     = 1024 // of one process, and its interpreters, that are looked through
	PythonFrameBytes     = 80   // of a frame that are read
	PythonThreadBytes    = 256  // of a thread's state
	PythonCodeBytes      = 256  // of a code object
	PythonNameBytes      = 32   // of a name's begin and of its end, in a cookie
	MaxHotSpotHeaps      = 4    // ranges of code of one process
	HotSpotBlobBytes     = 384  // of an nmethod that are read
	HotSpotConstBytes    = 64   // of a ConstMethod
	CommBytes            = 16   // TASK_COMM_LEN
	ExecPathBytes        = 256
)

// Sizes of its structs.
const (
	LabelBlockBytes   = 16 // struct label_block
	RawLabelBytes     = 12 // struct raw_label
	UnwindRuleBytes   = 16 // struct unwind_rule, and struct unwind_header in its place
	SampleHeaderBytes = 80 // struct sample_header
	ThreadReturnBytes = 24 // struct thread_return
)
