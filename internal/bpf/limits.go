package bpf

// Limits of src/record.h; layout_test.go holds them to the C header.
const (
	MaxLabelSources      = 4
	MaxLabels            = 64
	MaxLabelSlots        = 512
	MaxLabelKeyBytes     = 256
	MaxLabelValueBytes   = 1024
	MaxContextAttrsBytes = 2048
	MaxLabelBytes        = 8192
	MaxKernelFrames      = 128
	MaxUserFrames        = 1024
	MaxUnwindTables      = 8192
	MaxUnwindMappings    = 1024
	UnwindChunkMappings  = 16
	UnwindBlockBytes     = 1024
	UnwindPageBytes      = 4096
	maxFileRows          = 4096
	MaxFileTexts         = 4
	maxPrograms          = 1024
	unwindRuleBytes      = 16
	sampleHeaderBytes    = 88
	maxSampleBytes       = sampleHeaderBytes + MaxLabelBytes + 8*(MaxKernelFrames+MaxUserFrames)
	threadReturnBytes    = 24
	execPathBytes        = 256
	commBytes            = 16
	maxNodeJSBuckets     = 65536
	maxNodeJSChain       = 64
)
