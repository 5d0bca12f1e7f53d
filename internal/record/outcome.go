package record

// Outcome is the result of reading a label source or of walking a stack: enum
// outcome.
type Outcome uint8

// The results.
const (
	OutcomeNone            Outcome = iota // the thread has no labels now; a stack that does not exist
	OutcomePresent                        // labels were read; the stack ended where stacks end
	OutcomeTruncated                      // read up to a bound
	OutcomeFault                          // an address could not be read
	OutcomeUpdating                       // thread context record with valid == 0; a goroutine that begins or ends
	OutcomeInvalid                        // a field has a value the format forbids
	OutcomeNotAllocated                   // the thread never touched the module's TLS block
	OutcomeStaleModule                    // the thread's DTV is older than the module
	OutcomeNoThreadPointer                // the saved thread pointer is 0: not known yet (aarch64)
	OutcomeCompat                         // 32-bit code in a 64-bit kernel: not supported
	OutcomeNoRows                         // a stack that ends in code without unwind rows and frame pointers

	// NumOutcomes is the number of values, for arrays indexed by Outcome.
	NumOutcomes = iota
)

var outcomeNames = [NumOutcomes]string{
	"none", "present", "truncated", "fault", "updating", "invalid",
	"not_allocated", "stale_module", "no_thread_pointer", "compat", "no_rows",
}

// String returns the name used in metrics and logs.
func (o Outcome) String() string {
	if o >= NumOutcomes {
		return "unknown"
	}
	return outcomeNames[o]
}
