// SPDX-License-Identifier: Apache-2.0

package weight

// jsonObjectBytes is what the largest message takes that `{}` can be, or an element that is null.
const jsonObjectBytes = 600

// EstimateJSON is Estimate for JSON, by its objects and commas. It fails with ErrNested or a
// *TooLargeError.
func EstimateJSON(data []byte, limit int64) (int64, error) {
	bytes, depth := int64(len(data)), 0
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
			if quoted {
				bytes += entryHeadBytes
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
			bytes += scalarBytes
			if c == '{' {
				bytes += jsonObjectBytes
			}
		case c == '}' || c == ']':
			depth--
		case c == 'n':
			bytes += jsonObjectBytes
		case c == ',':
			bytes += scalarBytes
		}
		if depth > maxNesting {
			return bytes, ErrNested
		}
		if bytes > limit {
			return bytes, &TooLargeError{limit}
		}
	}
	return bytes, nil
}
