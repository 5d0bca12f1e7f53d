package hotspot

import (
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Bounds of code heaps.
const (
	maxHeapBytes    = 4 << 30 // ReservedCodeCacheSize is at most 2 GB
	minSegmentShift = 4
	maxSegmentShift = 16
)

// findHeaps finds the code heaps, whose places are reserved when the runtime starts, and the
// interpreter.
func (p *process) findHeaps(mem langruntime.Memory, f *fields) error {
	r := &reader{mem: mem}
	array := r.word(f.static("CodeCache._heaps"))
	length, data := f.of("GrowableArrayBase._len"), f.of("GrowableArray<int>._data")
	memory, segments, shift := f.of("CodeHeap._memory"), f.of("CodeHeap._segmap"), f.of("CodeHeap._log2_segment_size")
	low, high := f.of("VirtualSpace._low_boundary"), f.of("VirtualSpace._high_boundary")
	stubs := r.word(f.static("AbstractInterpreter._code"))
	buffer, limit, end := f.of("StubQueue._stub_buffer"), f.of("StubQueue._buffer_limit"), f.of("StubQueue._queue_end")
	p.record.CallStubReturn = r.word(f.static("StubRoutines._call_stub_return_address"))
	if f.missing != "" {
		return nil // the caller says so
	}
	if r.err != nil || array == 0 || stubs == 0 || p.record.CallStubReturn == 0 {
		return fmt.Errorf("%w: no code heaps yet", langruntime.ErrStarting)
	}
	n := r.half(array + uint64(length))
	first := r.word(array + uint64(data))
	if n > record.MaxHotSpotHeaps {
		return fmt.Errorf("%w: HotSpot with %d code heaps", langruntime.ErrStarting, n)
	}
	size, used := r.half(stubs+uint64(limit)), r.half(stubs+uint64(end))
	if size == 0 || used != size { // until it is made, it has room that stubs and compiled code get afterwards
		return fmt.Errorf("%w: no interpreter yet", langruntime.ErrStarting)
	}
	p.record.Interpreter = r.word(stubs + uint64(buffer))
	p.record.InterpreterLimit = p.record.Interpreter + uint64(size)
	for i := range n {
		heap := r.word(first + 8*uint64(i))
		if err := p.addHeap(r, heap, uint64(memory), uint64(segments), uint64(shift), uint64(low), uint64(high)); err != nil {
			return err
		}
	}
	if r.err != nil || n == 0 || p.record.Interpreter < p.record.Low || p.record.InterpreterLimit > p.record.High {
		return fmt.Errorf("%w: no code heaps yet", langruntime.ErrStarting)
	}
	return nil
}

func (p *process) addHeap(r *reader, heap, memory, segments, shift, low, high uint64) error {
	h := record.HotSpotHeap{
		Start:    r.word(heap + memory + low),
		Limit:    r.word(heap + memory + high),
		Segments: r.word(heap + segments + low),
	}
	bits := r.half(heap + shift)
	if r.err != nil || heap == 0 || h.Start == 0 || h.Segments == 0 {
		return fmt.Errorf("%w: no code heaps yet", langruntime.ErrStarting)
	}
	if h.Limit < h.Start || h.Limit-h.Start > maxHeapBytes || bits < minSegmentShift || bits > maxSegmentShift ||
		p.record.Heaps != [record.MaxHotSpotHeaps]record.HotSpotHeap{} && bits != uint32(p.record.SegmentShift) {
		return fmt.Errorf("%w: HotSpot with code heaps from %#x to %#x", langruntime.ErrStarting, h.Start, h.Limit)
	}
	p.record.SegmentShift = uint8(bits)
	for i := range p.record.Heaps {
		if p.record.Heaps[i].Limit == 0 {
			p.record.Heaps[i] = h
			break
		}
	}
	if p.record.Low == 0 || h.Start < p.record.Low {
		p.record.Low = h.Start
	}
	p.record.High = max(p.record.High, h.Limit)
	return nil
}
