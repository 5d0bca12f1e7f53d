package v8js

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// Offsets that are the same in all releases, and checked against their metadata as far as it
// has them.
const (
	mapType     = 12 // Map.instance_type
	arrayLength = 8  // FixedArrayBase.length
	arrayData   = 16

	stringLength   = 12
	stringData     = 16 // of all kinds: the characters, or the first member
	consSecond     = 24
	slicedOffset   = 24
	externalData   = 24 // ExternalString.resource_data
	firstNonstring = 128

	stringRepresentation = 7 // mask of the type
	stringSequential     = 0
	stringCons           = 1
	stringExternal       = 2
	stringSliced         = 3
	stringThin           = 5
	stringOneByte        = 8 // or else there are two
	stringUncached       = 16

	scriptSource     = 8
	scriptName       = 16
	scriptLineOffset = 24
	scriptLineEnds   = 56
	scriptID         = 64
	scriptBytes      = 72 // that are read

	codeKindMask = 15
	sharedBytes  = 72 // of a SharedFunctionInfo that are read

	deoptInlined = 1 // index in the deoptimization data
)

// Bounds of what is read for one object: a process may have made up what leads to more.
const (
	maxReads       = 1 << 15
	maxReadBytes   = 8 << 20            // of all but sources
	maxReadSources = 2 * maxSourceChars // characters; a source that is kept is not read again
	maxReadLines   = 2 * maxLines       // of sources
	maxTableLines  = 1 << 18            // of tables of lines: 2 MiB
)

// heap reads the objects of a process, for one that is asked for. A pointer to one has the tag 1,
// or 3 if it is weak; a small integer is the upper half of a word whose lower half is 0.
type heap struct {
	mem langruntime.Memory
	*Layout
	reads, taken   int // calls, bytes of all but sources
	sources, lines int // characters of sources, and their lines
	tableLines     int // lines of tables
	scripts        map[scriptKey]*script
	unkept         []keptScript // those of scripts that were read just now
	leads          []lead
}

// A lead is a word of an object that has led to what was read, such as a pointer to another object.
type lead struct{ addr, word uint64 }

func isObject(word uint64) bool { return word&1 == 1 }
func isSmi(word uint64) bool    { return word&0xffffffff == 0 }
func smi(word uint64) int32     { return int32(word >> 32) }

// gone says that an object is not what it has to be.
func gone(what string) error { return fmt.Errorf("%w: no %s", langruntime.ErrGone, what) }

// tooMuch says that an object is none that V8 makes.
func tooMuch() error { return fmt.Errorf("%w: it leads to too much", langruntime.ErrGone) }

func word(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// read fills b from an offset in an object.
func (h *heap) read(b []byte, object uint64, offset uint64) error {
	if !isObject(object) {
		return gone("object")
	}
	return h.readAt(b, object&^3+offset)
}

func (h *heap) readAt(b []byte, addr uint64) error {
	if h.taken += len(b); h.taken > maxReadBytes {
		return tooMuch()
	}
	return h.readSource(b, addr)
}

// readSource fills b with characters of a source.
func (h *heap) readSource(b []byte, addr uint64) error {
	if len(b) == 0 {
		return nil
	}
	if h.reads++; h.reads > maxReads {
		return tooMuch()
	}
	if err := h.mem.ReadAt(b, addr); err != nil {
		return fmt.Errorf("%w: %w", langruntime.ErrGone, err)
	}
	return nil
}

func (h *heap) word(object, offset uint64) (uint64, error) {
	var b [8]byte
	if err := h.read(b[:], object, offset); err != nil {
		return 0, err
	}
	return h.lead(b[:], object+offset, 0), nil
}

// lead returns the word at an offset in b, which was read from an object on, and notes it.
func (h *heap) lead(b []byte, object, offset uint64) uint64 {
	w := word(b, int(offset))
	h.leads = append(h.leads, lead{object&^3 + offset, w})
	return w
}

// unchanged reports whether all leads still are what they were. Else the collector may have moved what they led to
// before it was read, and another object may have its place. They are compared backwards: a lead that has not changed
// is still that of its object if those which have led there have not changed afterwards.
func (h *heap) unchanged() bool {
	var b [8]byte
	for _, l := range slices.Backward(h.leads) {
		if h.mem.ReadAt(b[:], l.addr) != nil || word(b[:], 0) != l.word {
			return false
		}
	}
	return true
}

// typeOf returns the type of an object. The address of one that the collector has moved is
// followed to its new place.
func (h *heap) typeOf(object uint64) (at uint64, instanceType uint16, err error) {
	first, err := h.word(object, 0)
	if err != nil {
		return 0, 0, err
	}
	if first != 0 && first&7 == 0 {
		object = first | 1
		if first, err = h.word(object, 0); err != nil {
			return 0, 0, err
		}
	}
	var b [2]byte
	err = h.read(b[:], first, mapType)
	return object, binary.LittleEndian.Uint16(b[:]), err
}

// of returns an object of a type, where it is now.
func (h *heap) of(object uint64, want uint16, what string) (uint64, error) {
	at, got, err := h.typeOf(object)
	if err != nil {
		return 0, err
	}
	if got != want {
		return 0, gone(what)
	}
	return at, nil
}

// bytes returns what a byte array holds; of a longer one than the limit the beginning: it is cut.
func (h *heap) bytes(object uint64, limit int) (b []byte, cut bool, err error) {
	at, t, err := h.typeOf(object)
	if err != nil {
		return nil, false, err
	}
	if t != h.types.byteArray && t != h.types.trustedByteArray {
		return nil, false, gone("bytes")
	}
	n, err := h.length(at, limit+1)
	if err != nil {
		return nil, false, err
	}
	b = make([]byte, min(n, limit))
	return b, n > limit, h.read(b, at, arrayData)
}

// length returns that of an array, not more than a limit.
func (h *heap) length(array uint64, limit int) (int, error) {
	n, err := h.word(array, arrayLength)
	if err != nil {
		return 0, err
	}
	if !isSmi(n) || smi(n) < 0 {
		return 0, gone("length")
	}
	return min(int(smi(n)), limit), nil
}
