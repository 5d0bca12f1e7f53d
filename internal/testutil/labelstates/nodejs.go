package labelstates

// NodeJS is the ABI of the states of testdata/bpf/nodejs.h.
const NodeJS = "thread_context_nodejs"

// The V8 of these states.
const (
	V8Field   = 0x20
	V8MapType = 2112
)

// nodeJS returns every state of what V8 keeps.
func nodeJS() (states []State) {
	for outcome, names := range map[string][]string{
		"present": {"right", "field-untold", "chain-64", "moved-context", "moved-table", "moved-value"},
		"none": {
			"no-slot", "no-handle", "no-context", "absent", "other-bucket", "cleared", "empty", "chain-64-absent",
		},
		"updating": {
			"moved-twice-context", "moved-twice-table", "moved-twice-value", "moved-nowhere", "moved-odd", "updating",
		},
		"invalid": {
			"integer-context", "weak-context", "integer-key", "integer-table", "integer-value", "not-a-map",
			"length", "length-object", "obsolete-table", "deleted-object", "buckets-3", "buckets-huge",
			"index-huge", "index-negative", "index-odd", "index-object", "cycle", "chain-65",
			"tagged-record", "null-record", "field-other", "garbage", "attrs-3000",
		},
		"fault": {
			"unmapped-slot", "unmapped-handle", "unmapped-context", "unmapped-type", "unmapped-table",
			"unmapped-value", "unmapped-record", "kernel-record", "moved-unmapped",
		},
	} {
		for _, name := range names {
			s := State{Name: "node-" + name, ABI: NodeJS, Outcome: outcome}
			if outcome == "present" {
				s.Set = "link n0=a0 n1=a1"
			}
			states = append(states, s)
		}
	}
	return states
}
