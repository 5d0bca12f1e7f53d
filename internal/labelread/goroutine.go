package labelread

import (
	"debug/elf"
	"encoding/binary"
	"fmt"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/tlsresolve"
)

// Layout of a map[string]string before Go 1.24: runtime/map.go, type hmap and bmap.
const (
	mapBytes      = 32 // count, flags, B, noverflow, hash0, buckets, oldbuckets
	mapFlags      = 8
	mapLogBuckets = 9
	mapBuckets    = 16
	mapOldBuckets = 24

	mapSameSizeGrow = 8 // of flags: as many old buckets as new ones
	mapSlots        = 8 // of one bucket
	mapMinTopHash   = 5 // less: empty, or moved to the new buckets
	mapKeys         = 8 // after the top hashes
	mapOverflow     = mapKeys + 2*mapSlots*stringBytes
	bmapBytes       = mapOverflow + 8
	stringBytes     = 16 // buf, len
)

// goroutine copies the labels of the goroutine that a thread runs:
//
//	g -> g.m -> m.curg -> curg.labels
//
// m must have the thread's own id.
func (s *source) goroutine(machine elf.Machine, thread *Stopped, src *record.LabelSource) record.Outcome {
	g := thread.Goroutine
	if src.Kind != record.TLSRegister {
		addr, err := (tlsresolve.Location{Offset: src.Offset}).Address(s.mem, machine, thread.ThreadPointer)
		if err != nil {
			return s.noAddress(err)
		}
		s.Addr = addr
		if g, err = s.word(addr); err != nil {
			return s.fault("the variable", err)
		}
	}
	if s.Pointer = g; g == 0 {
		return record.OutcomeNone // not a thread of Go's
	}
	addr, outcome := s.goroutineLabels(g, uint64(thread.TID), &src.Go)
	if outcome != record.OutcomePresent {
		return outcome
	}
	if src.GoMap {
		return s.labelMap(addr)
	}
	return s.labelSet(addr, true)
}

// ofGoroutine returns a goroutine's m and what its labels are kept in.
func (s *source) ofGoroutine(g uint64, at *record.GoLayout) (m, addr uint64, err error) {
	if m, err = s.word(g + uint64(at.GM)); err == nil {
		addr, err = s.word(g + uint64(at.GLabels))
	}
	return m, addr, err
}

// goroutineLabels returns what the labels of the goroutine that g's thread runs are
// kept in, not 0 if the outcome is present.
func (s *source) goroutineLabels(g, tid uint64, at *record.GoLayout) (addr uint64, outcome record.Outcome) {
	m, addr, err := s.ofGoroutine(g, at)
	switch {
	case err != nil:
		return 0, s.fault("the goroutine", err)
	case m == 0:
		return 0, record.OutcomeUpdating
	}
	id, err := s.word(m + uint64(at.MProcID))
	if err != nil {
		return 0, s.fault("the thread's m", err)
	}
	current, err := s.word(m + uint64(at.MCurG))
	switch {
	case err != nil:
		return 0, s.fault("the thread's m", err)
	case id == 0:
		return 0, record.OutcomeUpdating
	case id != tid:
		return 0, s.invalid("an m of thread %d on thread %d", id, tid)
	case current == 0:
		return 0, record.OutcomeNone // the scheduler is at work
	}
	if current != g {
		var owner uint64
		owner, addr, err = s.ofGoroutine(current, at)
		switch {
		case err != nil:
			return 0, s.fault("the current goroutine", err)
		case owner == 0:
			return 0, record.OutcomeUpdating
		case owner != m:
			return 0, s.invalid("a current goroutine of another thread")
		}
	}
	if addr == 0 {
		return 0, record.OutcomeNone
	}
	return addr, record.OutcomePresent
}

// labelMap copies the labels of the map to which there is a pointer at an address. A
// map that was still growing when it was set has entries in old buckets, too.
func (s *source) labelMap(addr uint64) record.Outcome {
	at, err := s.word(addr)
	if err != nil {
		return s.fault("the labels", err)
	}
	if at == 0 {
		return record.OutcomeNone
	}
	var head [mapBytes]byte
	if err := s.mem.ReadAt(head[:], at); err != nil {
		return s.fault("the map of labels", err)
	}
	count := binary.LittleEndian.Uint64(head[:])
	s.block.count = saturate(count)
	if count == 0 {
		return record.OutcomeNone
	}
	buckets, old := binary.LittleEndian.Uint64(head[mapBuckets:]), binary.LittleEndian.Uint64(head[mapOldBuckets:])
	if buckets == 0 || head[mapLogBuckets] > maxMapLogBuckets {
		return s.invalid("a map of labels with 2^%d buckets at %#x", head[mapLogBuckets], buckets)
	}
	w := mapWalk{source: s}
	n := uint64(1) << head[mapLogBuckets]
	complete, err := w.table(buckets, n)
	if err == nil && complete && old != 0 {
		if head[mapFlags]&mapSameSizeGrow == 0 {
			n /= 2
		}
		complete, err = w.table(old, n)
	}
	switch {
	case err != nil:
		return s.fault("the map of labels", err)
	case !complete || w.visits == maxMapVisits: // and nobody knows whether that was all
		return s.copySlots(w.slots, true, record.OutcomeTruncated)
	case uint64(len(w.slots)) != count:
		return s.invalid("a map of %d labels with a count of %d", len(w.slots), count)
	}
	return s.copySlots(w.slots, true, record.OutcomePresent)
}

// mapWalk collects the entries of a map.
type mapWalk struct {
	*source
	visits int
	slots  []slot
}

// table walks a table of n buckets. complete is false if there is more than is looked at.
func (w *mapWalk) table(addr, n uint64) (complete bool, err error) {
	for i := range n {
		for at := addr + bmapBytes*i; at != 0; {
			if w.visits == maxMapVisits {
				return false, nil
			}
			w.visits++
			var b [bmapBytes]byte
			if err := w.mem.ReadAt(b[:], at); err != nil {
				return false, fmt.Errorf("a bucket at %#x: %w", at, err)
			}
			for k := range mapSlots {
				if b[k] < mapMinTopHash {
					continue
				}
				if len(w.slots) == record.MaxLabelSlots {
					return false, nil
				}
				key, value := mapKeys+stringBytes*k, mapKeys+stringBytes*(mapSlots+k)
				w.slots = append(w.slots, slot{
					keyBuf: binary.LittleEndian.Uint64(b[key:]), keyLen: binary.LittleEndian.Uint64(b[key+8:]),
					valueBuf: binary.LittleEndian.Uint64(b[value:]), valueLen: binary.LittleEndian.Uint64(b[value+8:]),
				})
			}
			at = binary.LittleEndian.Uint64(b[mapOverflow:])
		}
	}
	return true, nil
}
