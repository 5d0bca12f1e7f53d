package labels

import (
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Label is one key and value. Both are arbitrary bytes: they may be empty,
// contain NUL or be no valid UTF-8.
type Label struct {
	Key, Value string
	Source     record.ABI // whose value won
}

// Set is an immutable label set in canonical form: sorted by key, keys unique.
// Sets that come for one user from one [Channel] in one interval are equal if and only if
// their pointers are, where equality covers keys, values and whether they are escaped, sources and marks.
type Set struct {
	labels    []Label
	escaped   []string // keys whose values Escape has changed, since they have had text and bytes
	truncated bool
	overflow  bool
}

var (
	emptySet          = &Set{}
	emptyTruncatedSet = &Set{truncated: true}
	emptyOverflowSet  = &Set{overflow: true}
)

// OverflowSet returns the set that stands for one that a budget had no room for.
func OverflowSet() *Set { return emptyOverflowSet }

// NewSet returns the canonical set of the given labels, of which the first with
// a given key is kept.
func NewSet(truncated bool, labels ...Label) *Set {
	sorted := slices.Clone(labels)
	slices.SortStableFunc(sorted, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	sorted = slices.CompactFunc(sorted, func(a, b Label) bool { return a.Key == b.Key })
	return &Set{labels: sorted, truncated: truncated}
}

// Len returns the number of labels.
func (s *Set) Len() int { return len(s.labels) }

// All yields the labels in ascending order of their keys.
func (s *Set) All() iter.Seq[Label] { return slices.Values(s.labels) }

// Text returns the value of one of its labels as valid UTF-8: by Escape, once.
func (s *Set) Text(l *Label) string {
	if slices.Contains(s.escaped, l.Key) {
		return l.Value
	}
	return Escape(l.Value)
}

// Truncated reports whether some key, value or label that the thread had
// published is missing from the set, wholly or in part, because of a bound or of its type.
func (s *Set) Truncated() bool { return s.truncated }

// Overflow reports whether the set stands for another one, whose labels a budget
// had no room for.
func (s *Set) Overflow() bool { return s.overflow }

// Bytes of what is not a value in the encoding of decoder.appendIdentity.
const (
	setHeadBytes   = 1
	labelHeadBytes = 1 + 2*binary.MaxVarintLen64 // at most
)

// escapedSource is set in the byte of the source of a value that is escaped.
const escapedSource = 0x80

func appendLabelHead(b []byte, e *entry) []byte {
	source := byte(e.source)
	if e.escaped {
		source |= escapedSource
	}
	b = append(b, source)
	b = binary.AppendUvarint(b, uint64(e.name.id))
	return binary.AppendUvarint(b, uint64(len(e.value)))
}
