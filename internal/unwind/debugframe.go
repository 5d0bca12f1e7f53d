package unwind

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// readDebugFrame reads .debug_frame, if there is one, for the functions that .eh_frame
// does not describe. A program that was compiled without unwind tables has both all the
// same: the C library's part of it that is linked in brings an .eh_frame.
func (b *builder) readDebugFrame() error {
	s, ok, err := debugFrame(b.file)
	if err != nil || !ok {
		return wrapDebugFrame(err)
	}
	before, known := *b, len(b.spans)
	err = b.read(s, false, false)
	if known == 0 {
		return wrapDebugFrame(err)
	}
	source, bytes := before.stats.Source, before.stats.SectionBytes
	if errors.Is(err, ErrLimit) { // what .eh_frame says is as good as without it
		b.forget(known, len(before.rows))
		err = nil
	}
	b.stats.Source, b.stats.SectionBytes = source, bytes
	if holdErr := b.keepGaps(known); holdErr != nil {
		return holdErr
	}
	return wrapDebugFrame(err)
}

func wrapDebugFrame(err error) error {
	if err != nil {
		return fmt.Errorf("read .debug_frame: %w", err)
	}
	return nil
}

// forget takes back all but the first spans and rows.
func (b *builder) forget(spans, rows int) {
	b.spans = b.spans[:spans]
	b.rows, b.full = b.rows[:rows], false
}

// gapBytes is what keepGaps takes for each of the first spans, of Go's heap.
const gapBytes = spanBytes + 8

// keepGaps drops the spans behind the first ones that overlap one of those.
func (b *builder) keepGaps(known int) error {
	if len(b.spans) == known {
		return nil
	}
	if err := b.holdMore(Held{Heap: gapBytes * known}); err != nil {
		return err
	}
	first := slices.Clone(b.spans[:known])
	slices.SortFunc(first, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	reach := make([]uint64, known) // the furthest end up to each
	furthest := uint64(0)
	for i, s := range first {
		furthest = max(furthest, s.end())
		reach[i] = furthest
	}
	others := slices.DeleteFunc(b.spans[known:], func(s span) bool {
		// Those that begin before its end, of which one may reach beyond its start.
		n, _ := slices.BinarySearchFunc(first, s.end(), func(x span, end uint64) int { return cmp.Compare(uint64(x.start), end) })
		return n > 0 && reach[n-1] > uint64(s.start)
	})
	b.spans = b.spans[:known+len(others)]
	return nil
}
