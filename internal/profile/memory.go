package profile

import "go.opentelemetry.io/collector/pdata/pcommon"

const (
	// outputShare times what entries and samples take is what Requests makes of them at most: each once more with its
	// attributes, and the tables by which equal ones are found.
	outputShare = 3
	// locationBytes is what a stack has of a frame there.
	locationBytes = 4
)

// Estimated memory of what a dictionary has once, with its place in the table by which equal ones are found.
const (
	tableStringBytes    = 64 // and its text
	tableAttributeBytes = 160
	tableFunctionBytes  = 80
	tableMappingBytes   = 320
	tableLocationBytes  = 224
	tableLineBytes      = 48
)

// Estimated memory of what is kept of the frames of a process, and of each.
const (
	keptTableBytes = 512
	keptFrameBytes = 64
)

// Estimated memory of a value of a resource, with its place in a list, and of an attribute beside its value.
const (
	resourceValueBytes     = 48
	resourceAttributeBytes = 80
)

// resourceBytes estimates the memory of attributes of a resource.
func resourceBytes(m pcommon.Map) (sum int) {
	for k, v := range m.All() {
		sum += resourceAttributeBytes + len(k) + resourceValue(v)
	}
	return sum
}

func resourceValue(v pcommon.Value) int {
	sum := resourceValueBytes
	switch v.Type() {
	case pcommon.ValueTypeStr:
		sum += len(v.Str())
	case pcommon.ValueTypeBytes:
		sum += v.Bytes().Len()
	case pcommon.ValueTypeMap:
		sum += resourceBytes(v.Map())
	case pcommon.ValueTypeSlice:
		for _, item := range v.Slice().All() {
			sum += resourceValue(item)
		}
	}
	return sum
}

// Held estimates the memory that the Builder has, with what it keeps over a Reset.
func (b *Builder) Held() int {
	return entryBytes*cap(b.entries) + 4*cap(b.sampleEntries) + 8*cap(b.sampleTimes) + valueBytes*cap(b.sampleValues) + b.stacks.bytes
}

// OutputBytes estimates the memory of what Requests makes of entries, samples and stacks, and needs for that. The stacks are
// told apart by their ids there, and their encoding is not copied. What they and the labels refer to, and the resources of
// processes, is told by Requests.
func (b *Builder) OutputBytes() int {
	return outputShare*(b.bytes-b.fresh) + b.stacks.bytes + locationBytes*b.stacks.frames
}

// weigh tells what the tables have grown to, and the resources.
func (b *build) weigh() { b.tell(b.tables.bytes + b.keptBytes) }

// release tells that nobody has the tables any more.
func (b *build) release() { b.tell(b.keptBytes) }

func (b *build) tell(bytes int) {
	if b.hold != nil && bytes != b.held {
		b.hold(bytes - b.held)
		b.held = bytes
	}
}
