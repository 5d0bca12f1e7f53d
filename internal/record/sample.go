package record

// SampleHeader is the head of a sample in a ring buffer: struct sample_header. Behind it
// are, without gaps, LabelBytes of label blocks, the kernel's and the user's frames.
type SampleHeader struct {
	TimeNs       uint64 // CLOCK_MONOTONIC
	Process      ProcessID
	PID          uint32 // as the collector's PID namespace sees it; 0: not visible there
	TID          uint32 // likewise
	UID          uint32 // in the init user namespace
	CPU          uint32
	KernelFrames uint16
	UserFrames   uint16
	LabelBytes   uint16 // a multiple of 8
	KernelStack  Outcome
	UserStack    Outcome
	KernelThread uint8
	ThreadState  ThreadState
	Presumed     uint8 // the labels come from sources that are not confirmed
	Pad          uint8
	Thread       uint32 // TID in the init PID namespace
	Comm         [CommBytes]byte
}

// ThreadReturn is the return of a thread to a CPU, in the ring buffer of switches: struct
// thread_return.
type ThreadReturn struct {
	LeftNs uint64 // SampleHeader.TimeNs of when it left
	TimeNs uint64 // CLOCK_MONOTONIC
	Thread uint32 // TID in the init PID namespace
	Pad    uint32
}
