// SPDX-License-Identifier: Apache-2.0

package weight

// jsonObjectBytes is what the largest message takes that an element of a list can be.
const jsonObjectBytes = 600

// A jsonScan goes over JSON.
type jsonScan struct {
	bytes  int64
	depth  int
	leaves [maxNesting + 1]bool // by depth: an element is no message
	text   []byte               // the last one: before a list, its key
}

// EstimateJSON is Estimate for JSON, by its objects, texts and commas; for bytes that are none, it is
// of no use. It fails with ErrNested or a *TooLargeError.
func EstimateJSON(data []byte, limit int64) (int64, error) {
	s := jsonScan{bytes: int64(len(data))}
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = s.quoted(data, i+1)
		case '{':
			s.enter(true)
			s.bytes += scalarBytes + jsonObjectBytes
		case '[':
			s.enter(s.isLeaf())
			s.element(data[i+1:])
		case '}', ']':
			s.depth = max(s.depth-1, 0)
		case ',':
			s.element(data[i+1:])
		}
		if s.depth > maxNesting {
			return s.bytes, ErrNested
		}
		if s.bytes > limit {
			return s.bytes, &TooLargeError{limit}
		}
	}
	return s.bytes, nil
}

func (s *jsonScan) enter(leaf bool) {
	if s.depth++; s.depth <= maxNesting {
		s.leaves[s.depth] = leaf
	}
}

// isLeaf tells a list of texts or numbers by its key. Each element of another is a message once it is decoded,
// whatever it is: null, or a number, for which the whole line is only refused in the end.
func (s *jsonScan) isLeaf() bool {
	switch string(s.text) {
	case "stringTable", "string_table", "attributeIndices", "attribute_indices", "locationIndices", "location_indices",
		"timestampsUnixNano", "timestamps_unix_nano", "values", "idKeys", "id_keys", "descriptionKeys", "description_keys":
		return true
	}
	return false
}

// element counts what follows in a list or an object. An object counts itself.
func (s *jsonScan) element(data []byte) {
	s.bytes += scalarBytes
	if s.depth > maxNesting || s.leaves[s.depth] {
		return
	}
	for _, c := range data {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', ']':
		default:
			s.bytes += jsonObjectBytes
		}
		return
	}
}

// quoted counts a text, and returns where it ends.
func (s *jsonScan) quoted(data []byte, from int) int {
	s.bytes += entryHeadBytes
	for i := from; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			s.text = data[from:i]
			return i
		}
	}
	return len(data)
}
