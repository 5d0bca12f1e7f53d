package record

// ABI is the format that a label source publishes: enum label_abi.
type ABI uint8

// The formats that are read.
const (
	ABINone                ABI = iota // no format: a block that names none
	ABIV0                             // custom labels v0: {storage, count} inline in TLS
	ABIV1                             // custom labels v1: pointer to {storage, count, capacity}
	ABIThreadContext                  // OTEP 4947: pointer to a thread context record
	ABIThreadContextNodeJS            // the same record, behind V8's async context (nodejs_v1_dev)
	ABIGo                             // pprof labels of goroutines

	// NumABIs is the number of values, for arrays indexed by ABI.
	NumABIs = iota
)

var abiNames = [NumABIs]string{"none", "custom_labels_v0", "custom_labels_v1", "thread_context", "thread_context_nodejs", "go_labels"}

var abiSymbols = [NumABIs]string{"", "custom_labels_thread_local_data", "custom_labels_current_set", "otel_thread_ctx_v1", "otel_thread_ctx_nodejs_v1", ""}

// ThreadContext tells whether the format is one that leads to thread context
// records. Labels of such have the source ABIThreadContext, however found.
func (a ABI) ThreadContext() bool { return a == ABIThreadContext || a == ABIThreadContextNodeJS }

// String returns the name used in metrics and logs.
func (a ABI) String() string {
	if a >= NumABIs {
		return "unknown"
	}
	return abiNames[a]
}

// Symbol returns the thread-local ELF symbol through which the format is
// published, or "" for ABIGo, which has none, and for a value that is no format.
func (a ABI) Symbol() string {
	if a >= NumABIs {
		return ""
	}
	return abiSymbols[a]
}
