package labels

import "github.com/customlabels/otelcol-customlabels/internal/record"

// Decoded is what one label section means. It is shared and never changes.
type Decoded struct {
	Set  *Set // never nil
	Link Link // zero: none
	// Promoted tells that Link comes from custom labels.
	Promoted bool
	Flags    byte   // W3C trace flags that go with Link; 0 without one
	Reads    []Read // one for each label block, in order; not to be modified
	Counts   Counts

	tally *tally // nil: nothing to count but Counts
}

// Read is the result of reading one label source.
type Read struct {
	ABI     record.ABI
	Outcome record.Outcome // a block found malformed by the decoder is OutcomeInvalid
}

// KeyMap gives the attribute names of a thread context's key indexes. A nil
// KeyMap knows none. It is immutable and compared by identity.
type KeyMap struct {
	names []keyText
	bytes int // in memory, about
}

// keyText is a name, or its first bytes.
type keyText struct {
	text []byte
	cut  bool
}

// nameBytes is the cost of a name beside its bytes.
const nameBytes = 32

// maxKeyNames follows from the key index being one byte.
const maxKeyNames = 256

// NewKeyMap returns the map in which index i has the name names[i]; an empty one
// is none. Names beyond the 256th can never be referred to and are ignored; of a longer one, the
// first record.MaxLabelKeyBytes are the key, as of other labels.
func NewKeyMap(names []string) *KeyMap {
	names = names[:min(len(names), maxKeyNames)]
	m := &KeyMap{names: make([]keyText, len(names))}
	for i, name := range names {
		text, cut := []byte(name[:min(len(name), record.MaxLabelKeyBytes)]), len(name) > record.MaxLabelKeyBytes
		if cut {
			text = trimRune(text)
		}
		m.names[i] = keyText{text, cut}
		m.bytes += nameBytes + len(text)
	}
	return m
}

// Len returns the number of names.
func (m *KeyMap) Len() int {
	if m == nil {
		return 0
	}
	return len(m.names)
}

// Name returns the name of an index.
func (m *KeyMap) Name(index byte) (string, bool) {
	name, ok := m.name(index)
	return string(name.text), ok
}

func (m *KeyMap) name(index byte) (keyText, bool) {
	if int(index) >= m.Len() {
		return keyText{}, false
	}
	name := m.names[index]
	return name, len(name.text) > 0
}
