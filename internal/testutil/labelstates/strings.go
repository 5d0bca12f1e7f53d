package labelstates

import (
	"slices"
	"strings"
)

// maxKeyBytes is a bound of record.h.
const maxKeyBytes = 256

const letters = "abcdefghijklmnopqrstuvwxyz"

// stringLengths returns the lengths of the strings of testdata/bpf/strings.h, and those of them that are
// in one piece of memory.
func stringLengths() (all, together []int) {
	all = []int{1, 7, 8, 9, 39, 40, 41, 47, 63, 64, 65, 256, 511, 512, 513, 1024}
	return all, all[:8]
}

// ofLengths is a set of labels with values of these lengths, and keys as far as they may be.
func ofLengths(lengths []int) string {
	type label struct{ key, value string }
	var all []label
	for i, n := range lengths {
		all = append(all, label{numberedString(2*i, min(n, maxKeyBytes)), numberedString(2*i+1, n)})
	}
	slices.SortFunc(all, func(a, b label) int { return strings.Compare(a.key, b.key) })
	var set string
	for _, l := range all {
		set = Show(set, l.key, l.value)
	}
	return set
}

func numberedString(n, length int) string {
	n %= len(letters)
	return strings.Repeat(letters, length/len(letters)+2)[n : n+length]
}

// inSlots is the value of the state strings-in-slots: of two holes, each without a key.
func inSlots() string {
	noKey := strings.Repeat("\x00", 8)
	return noKey + letters[:24] + noKey + letters[24:25]
}
