package labelread

// Bounds of internal/bpf/src/record.h; a test compares them with the header.
const (
	maxLabels       = 64      // live labels copied from one label set
	maxSlots        = 512     // slots of one label set examined, holes included
	maxKeyBytes     = 256     // of one key
	maxValueBytes   = 1024    // of one value
	maxAttrsBytes   = 2048    // attrs-data of a thread context record
	maxSectionBytes = 8192    // the label section of one sample, block head included
	maxBuckets      = 1 << 16 // of the hash table of an async context
	maxEntries      = 64      // of one bucket

	maxMapLogBuckets = 16  // of a map of Go's
	maxMapVisits     = 256 // buckets of one looked at, overflow included
)

// Sizes of its structs.
const (
	blockBytes    = 16 // struct label_block
	rawLabelBytes = 12 // struct raw_label
)
