//go:build linux

package executable

import (
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// rowsHeld is the memory that the rows of one file take while they are built, in the account of all.
type rowsHeld struct {
	memory *budget.Memory // nil: no limit
	bytes  int            // as on Go's heap
}

// hold is for unwind.Limits: it refuses what would have others give way.
func (h *rowsHeld) hold(held unwind.Held) error {
	if more := weighed(held) - h.bytes; more > 0 && h.memory.PressureWith(budget.OfRows, more) >= budget.Scarce {
		return errMemory
	}
	h.set(held)
	return nil
}

// set notes what is held.
func (h *rowsHeld) set(held unwind.Held) {
	bytes := weighed(held)
	h.memory.Add(budget.OfRows, bytes-h.bytes)
	h.bytes = bytes
}

func (h *rowsHeld) release() { h.set(unwind.Held{}) }

// weighed is what counts as much as this on Go's heap: what is outside of it does not grow to more.
func weighed(held unwind.Held) int { return held.Heap + held.Mapped/budget.HeapWeight }

// codeShare of all memory may be for the code of one file that is followed: more is not, rather than
// tried again and again.
const codeShare = 2

func codeBytes(m *budget.Memory) int {
	if m == nil {
		return unwind.DefaultCodeBytes
	}
	return min(unwind.DefaultCodeBytes, max(1, int(m.Limit())/codeShare/(budget.HeapWeight*unwind.CodeHeldBytes)))
}
