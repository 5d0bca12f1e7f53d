package labels

import "github.com/customlabels/otelcol-customlabels/internal/record"

// rank orders formats by precedence: on the same key, the higher one wins.
func rank(a record.ABI) int {
	if a == record.ABIGo {
		return -1 // labels that were published for this are worth more than those for a profiler
	}
	return int(a)
}

// trusted reports whether a block with this outcome carries a payload to decode.
func trusted(o record.Outcome) bool {
	return o == record.OutcomePresent || o == record.OutcomeTruncated
}
