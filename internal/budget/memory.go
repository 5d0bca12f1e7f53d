package budget

import "sync/atomic"

// Part is a part of the receiver that holds memory.
type Part uint8

// The parts.
const (
	OfProcesses Part = iota // the process table, and what is published of it
	OfFiles                 // what is known of executables
	OfRows                  // unwind rows while they are built
	OfSymbols               // names of functions
	OfKernel                // names of the kernel's functions
	OfLabels                // decoded label sets
	OfBatches               // samples that were not handed over yet
	OfWaiting               // samples that wait for a name, and threads that are off the CPU
	OfMetrics               // sums of CPU time by process and label
	OfOutput                // the profiles and metrics that are being built

	NumParts = iota
)

var partNames = [NumParts]string{
	"processes", "files", "unwind_rows", "symbols", "kernel_symbols", "labels", "batches", "waiting", "metrics", "output",
}

// String returns the name used in metrics.
func (p Part) String() string { return partNames[p] }

// Pressure says how near the limit is. Each stage includes what the ones before ask for.
type Pressure uint8

// The stages.
const (
	Relaxed Pressure = iota
	// Tight: caches give way, and batches are handed over earlier.
	Tight
	// Scarce: of processes that are new only the least is kept.
	Scarce
	// Full: nothing new is kept.
	Full
)

// The stages begin at so many eighths of the limit.
const (
	tightEighths  = 6
	scarceEighths = 7
)

// HeapWeight is what a byte on Go's heap counts: the heap grows to twice what is in use
// before the garbage collector runs.
const HeapWeight = 2

// MapEntryBytes is what an entry of a map with small keys and values takes, at the usual load.
const MapEntryBytes = 64

// weight of what a part tells. Names are kept outside of Go's heap.
func (p Part) weight() int64 {
	if p == OfSymbols || p == OfKernel {
		return 1
	}
	return HeapWeight
}

// Memory is a limit in bytes for what all parts hold together, with what the garbage
// collector needs for it. Each part tells its own estimate of what is in use.
type Memory struct {
	limit int64
	used  atomic.Int64
	parts [NumParts]atomic.Int64
}

// NewMemory returns a limit of so many bytes.
func NewMemory(limit int) *Memory { return &Memory{limit: int64(limit)} }

// Add notes that a part holds so many bytes more, or less.
func (m *Memory) Add(p Part, bytes int) {
	if m == nil || bytes == 0 {
		return
	}
	counted := int64(bytes) * p.weight()
	m.parts[p].Add(counted)
	m.used.Add(counted)
}

// Set notes that a part holds so many bytes. Only one goroutine at a time may do so, and
// none may call Add for the same part.
func (m *Memory) Set(p Part, bytes int) {
	if m == nil {
		return
	}
	counted := int64(bytes) * p.weight()
	m.used.Add(counted - m.parts[p].Swap(counted))
}

// Limit returns the limit, 0 of a nil Memory.
func (m *Memory) Limit() int64 {
	if m == nil {
		return 0
	}
	return m.limit
}

// Part returns what is counted for a part.
func (m *Memory) Part(p Part) int64 {
	if m == nil {
		return 0
	}
	return m.parts[p].Load()
}

// Used returns what is counted for all parts.
func (m *Memory) Used() int64 {
	if m == nil {
		return 0
	}
	return m.used.Load()
}

// Pressure returns the stage that has been reached.
func (m *Memory) Pressure() Pressure { return m.stage(m.Used()) }

// PressureBeside returns the stage that has been reached without what a part holds: for who works for that part, and
// would do less because of its own work.
func (m *Memory) PressureBeside(p Part) Pressure { return m.stage(m.Used() - m.Part(p)) }

// PressureWith returns the stage that is reached when a part holds so many bytes more.
func (m *Memory) PressureWith(p Part, bytes int) Pressure {
	return m.stage(m.Used() + int64(bytes)*p.weight())
}

// stage is that of so many bytes.
func (m *Memory) stage(used int64) Pressure {
	if m == nil {
		return Relaxed
	}
	switch {
	case used >= m.limit:
		return Full
	case used >= m.limit/8*scarceEighths:
		return Scarce
	case used >= m.limit/8*tightEighths:
		return Tight
	}
	return Relaxed
}

// Excess returns by how many bytes caches should shrink: what is above the stage Tight.
func (m *Memory) Excess() int {
	if m == nil {
		return 0
	}
	return int(max(m.used.Load()-m.limit/8*tightEighths, 0))
}
