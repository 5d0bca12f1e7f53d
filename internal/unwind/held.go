package unwind

import (
	"unsafe"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// CodeHeldBytes are held of Go's heap for each byte of code that is followed: the code, and what package
// codeframes knows of it.
const CodeHeldBytes = 25

const (
	// holdStep is how much a list takes between two calls of Limits.Hold.
	holdStep = 256 << 10

	rowBytes  = int(unsafe.Sizeof(record.UnwindRow(0)))
	spanBytes = int(unsafe.Sizeof(span{}))

	// mapEntryBytes is the rough cost of an entry of a map beside key and value.
	mapEntryBytes = 32
	// ruleHeld is what a rule takes in builder.ruleOf and builder.rules, cieHeld a CIE in builder.cies.
	ruleHeld = 2*int(unsafe.Sizeof(record.UnwindRule{})) + mapEntryBytes
	cieHeld  = int(unsafe.Sizeof(cie{})) + mapEntryBytes
	// cieStep is how many of them there are between two calls of Limits.Hold.
	cieStep = 1 << 10
)

// Held is memory, in bytes.
type Held struct {
	Heap   int // of Go's heap
	Mapped int // outside of it
}

// hold tells Limits.Hold what a builder has, with a step that its lists may take before it asks again. It
// returns false if that is refused: New comes to nothing then.
func (b *builder) hold() bool {
	b.roomRows, b.roomSpans = len(b.rows)+holdStep/rowBytes, len(b.spans)+holdStep/spanBytes
	if b.limits.Hold == nil || b.refused != nil {
		return b.refused == nil
	}
	b.refused = b.limits.Hold(Held{
		Heap:   len(b.rules)*ruleHeld + len(b.cies)*cieHeld + b.more.Heap,
		Mapped: b.roomRows*rowBytes + b.roomSpans*spanBytes + b.more.Mapped,
	})
	return b.refused == nil
}

// holdMore is hold with what comes beside the lists, until it is called again: what was before that is
// garbage at best.
func (b *builder) holdMore(more Held) error {
	b.more = more
	b.hold()
	return b.refused
}

// Held is the memory that a table takes.
func (t *Table) Held() Held {
	return Held{
		Heap:   len(t.Rules) * int(unsafe.Sizeof(record.UnwindRule{})),
		Mapped: 4*len(t.Index) + rowBytes*len(t.Rows),
	}
}
