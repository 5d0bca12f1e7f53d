package labels

import "github.com/customlabels/otelcol-customlabels/internal/record"

// rank orders formats by precedence: on the same key, the higher one wins.
func rank(a record.ABI) int {
	if a == record.ABIGo {
		return -1 // labels that were published for this are worth more than those for a profiler
	}
	if a.ThreadContext() {
		return int(record.ABIThreadContext)
	}
	return int(a)
}

// unreadable reports whether there may have been labels, of which nothing is known.
func unreadable(o record.Outcome) bool {
	switch o {
	case record.OutcomeFault, record.OutcomeUpdating, record.OutcomeInvalid, record.OutcomeNoThreadPointer:
		return true
	}
	return false
}

// trusted reports whether a block with this outcome carries a payload to decode.
func trusted(o record.Outcome) bool {
	return o == record.OutcomePresent || o == record.OutcomeTruncated
}
