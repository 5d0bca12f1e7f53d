package symbol

// collects reports whether Go's heap is to be collected for what was dropped: its collector does not know how much that
// is, and may take minutes until it gives it back. That is when it is more than all may take.
func (h *held) collects(bytes int) bool {
	if h.freed <= bytes {
		return false
	}
	h.freed = 0
	return true
}

// outside is how many of an allocation's bytes lie outside of Go's heap.
func outside(bytes int) int {
	if bytes < outsideBytes {
		return 0
	}
	return bytes
}

// outside implements holder.
func (e *cached[K]) outside() int {
	if e.known == nil {
		return 0
	}
	return outside(e.known.table.bytes())
}

// outside implements holder.
func (e *mapped[K]) outside() int { return outside(e.current.functions.bytes()) }
