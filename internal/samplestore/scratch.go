package samplestore

// scratch is memory for what a query makes of one part after the other, and does not keep.
type scratch struct {
	// by label
	holding []holding
	// by label set
	states        []uint32
	allNs, heldNs []int64
	failedNs      [][]int64 // by filter
	classes       []int8
	// by place of the trie
	sums  sideSums
	first []uint32 // the first row of it, in rows
	rows  []grouped
}

// grouped is a row of a group.
type grouped struct {
	ns    int64
	group uint8
	side  int8
}

func (s *Store) takeScratch() *scratch {
	if m, ok := s.scratches.Get().(*scratch); ok {
		return m
	}
	return &scratch{}
}

// zeroed returns n zeros in memory that may have been used before.
func zeroed[T any](memory *[]T, n int) []T {
	if cap(*memory) < n {
		*memory = make([]T, n*5/4)
	}
	*memory = (*memory)[:n]
	clear(*memory)
	return *memory
}
