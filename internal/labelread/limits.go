package labelread

// Bounds of internal/bpf/src/go.bpf.h; a test compares them with the header.
const (
	maxMapLogBuckets = 16  // of a map of Go's
	maxMapVisits     = 256 // buckets of one looked at, overflow included
)
