package profile

import (
	"bytes"
	"math"
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// key is the aggregation key. It is compared in full; the stack by an id that
// is unique to its content, the label set by its canonical pointer.
type key struct {
	process  uint64
	set      *labels.Set
	link     labels.Link
	stack    uint32
	epoch    uint32
	tid, cpu uint32
	comm     [commBytes]byte
	cut      bool // the user stack lacks its outer frames
	sampled  Sampled
	state    record.ThreadState
	overflow overflow
}

const commBytes = 16 // TASK_COMM_LEN

// Estimated memory by object, map buckets included.
const (
	entryBytes  = 2*int(unsafe.Sizeof(key{})) + 16
	sampleBytes = 4 + 8
	valueBytes  = 8
	stackBytes  = 64
)

// maxTime is what a time.Time can hold in nanoseconds (year 2262). With the
// bound the end of an interval that contains a timestamp cannot overflow.
const maxTime = math.MaxInt64

// keptBytes bounds what a Builder holds on to over a Reset, of entries and
// samples and of stacks each.
const keptBytes = 2 << 20

// Builder aggregates samples into a batch.
type Builder struct {
	opts    Options
	bytes   int            // growth since Reset
	fresh   int            // of it, stacks
	index   map[key]uint32 // to entries
	entries []key
	// One element for each sample, in order of arrival: its entry, its time.
	// One list for all entries grows less often than one each.
	sampleEntries []uint32
	sampleTimes   []uint64
	sampleValues  []int64 // of absences only
	stacks        stackTable
	overflown     [stackOverflow + 1]int
	lackingFrames int // samples
}

// NewBuilder returns an empty Builder.
func NewBuilder(opts Options) *Builder {
	b := &Builder{opts: opts}
	b.forget()
	b.stacks.forget()
	return b
}

// Add adds a sample, and reports whether its key is new in the batch. A key that was seen before costs no allocation, except now
// and then one for the growing list of timestamps.
func (b *Builder) Add(s *Sample) (news bool) {
	stack, known := b.stacks.find(s.KernelFrames, s.UserFrames)
	if !known && !b.stacksFull() {
		var added int
		stack, added = b.stacks.add()
		b.bytes += added
		b.fresh += added
		known = true
	}
	k := key{
		process: s.Process,
		set:     s.Set,
		link:    s.Link,
		stack:   stack,
		epoch:   s.Epoch,
		cut:     incomplete(s.UserStack) || incomplete(s.KernelStack),
		state:   s.State,
	}
	if b.opts.TraceAttributes && !s.Link.IsZero() {
		k.sampled = s.Sampled
	}
	if b.opts.ThreadID {
		k.tid = s.TID
	}
	if b.opts.ThreadName {
		comm, _, _ := bytes.Cut(s.Comm, []byte{0})
		copy(k.comm[:], comm)
	}
	if b.opts.CPUAttribute {
		k.cpu = s.CPU
	}
	before := len(b.entries)
	entry := b.entry(k, known)
	b.overflown[b.entries[entry].overflow]++
	b.sampleEntries = append(b.sampleEntries, entry)
	b.sampleTimes = append(b.sampleTimes, min(s.TimeUnixNano, maxTime))
	b.bytes += sampleBytes
	if b.opts.OffCPU != nil {
		b.sampleValues = append(b.sampleValues, s.OffCPUNs)
		b.bytes += valueBytes
	}
	return len(b.entries) > before
}

// entry returns the entry of a key, or of what stands for it where there is no room
// for another entry. Without a stack, the key's is not known and there is no room for it.
func (b *Builder) entry(k key, stack bool) uint32 {
	if stack {
		if entry, ok := b.index[k]; ok {
			return entry
		}
		if b.setsFull() {
			k = k.withoutLabels()
			if entry, ok := b.index[k]; ok {
				return entry
			}
		}
	}
	if !stack || b.stacksFull() {
		k = k.withoutStack(b.emptyStack())
		if entry, ok := b.index[k]; ok {
			return entry
		}
	}
	entry := uint32(len(b.entries))
	b.index[k] = entry
	b.entries = append(b.entries, k)
	b.bytes += entryBytes
	return entry
}

// incomplete reports whether a walk ended before the entry of the thread.
func incomplete(o record.Outcome) bool {
	return o != record.OutcomePresent && o != record.OutcomeNone && o != record.OutcomeCompat
}

// Samples returns the number of samples added since the last Reset.
func (b *Builder) Samples() int { return len(b.sampleTimes) }

// Bytes estimates by how much memory the batch has grown since the last Reset.
// Label sets belong to their cache and are not included, nor is what Requests needs.
func (b *Builder) Bytes() int { return b.bytes }

// Reset empties the Builder. It keeps memory, and the stacks it has seen, for
// the next batch, which mostly looks like the last one; but only a bounded
// amount, so that a burst does not stay.
func (b *Builder) Reset() {
	if b.bytes > keptBytes {
		b.forget()
	}
	if b.stacks.bytes > keptBytes {
		b.stacks.forget()
	}
	b.bytes, b.fresh, b.lackingFrames = 0, 0, 0
	clear(b.index)
	clear(b.entries) // let go of the label sets
	b.entries = b.entries[:0]
	b.sampleEntries = b.sampleEntries[:0]
	b.sampleTimes = b.sampleTimes[:0]
	b.sampleValues = b.sampleValues[:0]
	b.overflown = [stackOverflow + 1]int{}
}

func (b *Builder) forget() {
	b.index = make(map[key]uint32)
	b.entries, b.sampleEntries, b.sampleTimes, b.sampleValues = nil, nil, nil, nil
}
