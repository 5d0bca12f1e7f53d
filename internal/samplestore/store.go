package samplestore

import (
	"hash/maphash"
	"math"
	"sync"
)

// Bounds of one sample. What is beyond is left out and counted.
const (
	MaxFrames = 2048 // those nearest to the leaf stay
	MaxLabels = 256
)

// MinBytes is the least memory of a store.
const MinBytes = 1 << 20

// segments is the number of segments in a full store: so much of it leaves at once.
const segments = 8

// Store keeps samples. It is safe for concurrent use.
type Store struct {
	maxBytes  int64
	seed      maphash.Seed
	scratches sync.Pool
	kept      kept

	mu       sync.Mutex
	all      []*segment // the oldest first, never empty of rows
	bytes    int64
	version  uint64
	evicted  int64
	cut      int64
	received int64
	kinds    [Kinds]bool
}

// New returns a store that keeps samples in about maxBytes of memory, at least MinBytes.
func New(maxBytes int64) *Store {
	return &Store{maxBytes: max(maxBytes, MinBytes), seed: maphash.MakeSeed()}
}

func (s *Store) segmentBytes() int64 { return s.maxBytes / segments }

// Batch adds samples in one step: no query sees a part of them. It calls fill once, with
// the function that adds a sample.
func (s *Store) Batch(fill func(add func(*Sample))) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[*Location]uint32{}
	var current *segment
	fill(func(sample *Sample) {
		for len(sample.Points) > 0 {
			next := s.room(sample.Points[0].Ns)
			if next != current {
				current = next
				clear(known)
			}
			s.put(current, sample, known)
		}
	})
	s.version++
}

// room returns the segment that takes the next sample, whose first point has so much time, and
// makes old ones leave.
func (s *Store) room(ns int64) *segment {
	if n := len(s.all); n > 0 {
		if last := s.all[n-1]; last.bytes < s.segmentBytes() && last.fits(ns) {
			return last
		}
		s.bytes -= s.all[n-1].indexBytes
		s.all[n-1].seal()
	}
	for len(s.all) > 0 && s.bytes+s.segmentBytes() > s.maxBytes {
		s.bytes -= s.all[0].bytes
		s.evicted = AddNs(s.evicted, s.all[0].hits)
		s.all[0].gone.Store(true)
		s.all[0] = nil
		s.kept.forget()
		s.all = s.all[1:]
	}
	made := newSegment(s.seed)
	s.all = append(s.all, made)
	s.bytes += made.bytes
	return made
}

// put adds points of a sample until the segment is full, and takes them off the sample.
func (s *Store) put(to *segment, sample *Sample, known map[*Location]uint32) {
	before, added := to.bytes, 0
	stack, labels := sample.Stack, sample.Labels
	if len(stack) > MaxFrames || len(labels) > MaxLabels {
		stack, labels = stack[:min(len(stack), MaxFrames)], labels[:min(len(labels), MaxLabels)]
		s.cut++
	}
	leaf, set := to.stack(stack, known), to.set(sample.Kind, labels)
	for i, p := range sample.Points {
		if i > 0 && (to.bytes >= s.segmentBytes() || !to.fits(p.Ns)) {
			break
		}
		to.add(leaf, set, p.TimeNs/1e6, p.Hits, p.Ns)
		s.received = AddNs(s.received, p.Hits)
		added++
	}
	sample.Points = sample.Points[added:]
	s.kinds[sample.Kind] = true
	s.bytes += to.bytes - before
}

// Status is the state of a store.
type Status struct {
	Version      uint64 // changes whenever samples come in
	Bytes, Max   int64
	Received     int64 // hits
	Evicted      int64 // hits that left because memory was short
	Cut          int64 // samples of which frames or labels were left out
	FromMs, ToMs int64 // times of the samples that are there; 0, 0: none
	Kinds        [Kinds]bool
}

// Status returns the state of the store.
func (s *Store) Status() Status {
	_, status := s.snapshot()
	return status
}

// part is what a segment has at an instant.
type part struct {
	columns
	segment *segment
	full    bool // it takes no more
}

// parts returns what there is now, arranged.
func (s *Store) parts() ([]*part, Status) {
	parts, status := s.snapshot()
	for _, p := range parts {
		if !p.full {
			p.arrange()
		}
	}
	return parts, status
}

// snapshot returns what there is now.
func (s *Store) snapshot() ([]*part, Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{
		Version: s.version, Bytes: s.bytes, Max: s.maxBytes, Received: s.received, Evicted: s.evicted, Cut: s.cut,
		Kinds: s.kinds,
	}
	parts := make([]*part, len(s.all)) // one by one: some are kept
	from, to := int64(math.MaxInt64), int64(math.MinInt64)
	for i, segment := range s.all {
		parts[i] = &part{segment.columns, segment, segment.index == nil}
		from, to = min(from, segment.minMs), max(to, segment.maxMs)
	}
	if from <= to {
		status.FromMs, status.ToMs = from, to
	}
	return parts, status
}
