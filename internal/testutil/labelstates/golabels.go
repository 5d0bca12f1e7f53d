package labelstates

import "runtime"

// Go is the ABI of the states of testdata/bpf/go.h.
const Go = "go_labels"

// GoOffsets is record.GoLayout.
type GoOffsets struct {
	GM, GLabels, MProcID, MCurG uint16
}

// GoLayout returns the layout of a state.
func GoLayout(state string) GoOffsets {
	if state == "go-far" {
		return GoOffsets{GM: 8, GLabels: 520, MProcID: 504, MCurG: 0}
	}
	return GoOffsets{GM: 16, GLabels: 24, MProcID: 24, MCurG: 32}
}

// goLabels returns every state of a goroutine, with labels in a slice, and in a map as
// before Go 1.24.
func goLabels() []State {
	one, five, ten := "k0=v0", numbered("k%d=v%d", 5), numbered("k%d=v%d", 10)
	states := []State{
		{Name: "no-goroutine", Outcome: "none"},
		{Name: "no-m", Outcome: "updating"},
		{Name: "thread-begins", Outcome: "updating"},
		{Name: "other-thread", Outcome: "invalid"},
		{Name: "scheduler", Outcome: "none"},
		{Name: "g0", Outcome: "present", Set: one},
		{Name: "g0-left", Outcome: "updating"},
		{Name: "g0-other", Outcome: "invalid"},
		{Name: "far", Outcome: "present", Set: one},
		{Name: "none", Outcome: "none"},
		{Name: "register", Outcome: "none"},
		{Name: "labels-0", Outcome: "none"},
		{Name: "labels-1", Outcome: "present", Set: one},
		{Name: "labels-10", Outcome: "present", Set: ten},
		{Name: "labels-64", Outcome: "present", Many: 64},
		{Name: "labels-65", Outcome: "truncated", Many: 64},
		{Name: "labels-600", Outcome: "truncated", Many: 64},
		{Name: "empty", Outcome: "present", Set: "="},
		{Name: "value-1024", Outcome: "present", Set: "k=" + long("x", 1024)},
		{Name: "value-2000", Outcome: "truncated", Set: "k=" + long("x", 1024)},
		{Name: "value-2-60", Outcome: "truncated", Set: "k=" + long("x", 1024)},
		{Name: "key-300", Outcome: "truncated", Set: long("x", 256) + "=v"},
		{Name: "section-full", Outcome: "truncated", Many: 7},
		{Name: "null-list", Outcome: "invalid"},
		{Name: "unmapped-g", Outcome: "fault"},
		{Name: "unmapped-m", Outcome: "fault"},
		{Name: "unmapped-current", Outcome: "fault"},
		{Name: "unmapped-set", Outcome: "fault"},
		{Name: "unmapped-list", Outcome: "fault"},
		{Name: "unmapped-key", Outcome: "fault"},
		{Name: "kernel-value", Outcome: "fault"},

		// map-N-in-M: N labels in 2^M buckets.
		{Name: "map-nil", Outcome: "none"},
		{Name: "map-0-in-0", Outcome: "none"},
		{Name: "map-1-in-0", Outcome: "present", Set: one},
		{Name: "map-10-in-0", Outcome: "present", Set: ten},
		{Name: "map-10-in-3", Outcome: "present", Set: ten},
		{Name: "map-64-in-3", Outcome: "present", Many: 64},
		{Name: "map-65-in-3", Outcome: "truncated", Many: 64},
		{Name: "map-600-in-6", Outcome: "truncated", Many: 64},
		{Name: "map-10-in-8", Outcome: "truncated", Set: ten},
		{Name: "map-growing", Outcome: "present", Set: five},
		{Name: "map-same-size", Outcome: "present", Set: five},
		{Name: "map-chain-255", Outcome: "present", Set: one},
		{Name: "map-chain-256", Outcome: "truncated", Set: one},
		{Name: "map-chain-0", Outcome: "truncated", Set: one},
		{Name: "map-miscounted", Outcome: "invalid"},
		{Name: "map-no-buckets", Outcome: "invalid"},
		{Name: "map-huge", Outcome: "invalid"},
		{Name: "map-unmapped", Outcome: "fault"},
		{Name: "map-unmapped-buckets", Outcome: "fault"},
		{Name: "map-unmapped-old", Outcome: "fault"},
		{Name: "map-unmapped-overflow", Outcome: "fault"},
	}
	for i := range states {
		s := &states[i]
		s.GoMap = len(s.Name) > 4 && s.Name[:4] == "map-"
		s.GoRegister = s.Name == "register"
		if s.GoRegister && runtime.GOARCH == "arm64" {
			s.Outcome, s.Set = "present", one
		}
		s.Name, s.ABI = "go-"+s.Name, Go
	}
	return states
}
