package labels

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPatternBytes of a pattern for keys.
const MaxPatternBytes = 256

// pattern matches keys: * any run of characters, also none, ? one character, all else
// itself. A character is a sequence of UTF-8, or one byte that is not part of any.
type pattern struct {
	text    string // valid UTF-8
	literal bool   // without wildcards
}

func newPattern(text string) (pattern, error) {
	switch {
	case len(text) > MaxPatternBytes:
		return pattern{}, fmt.Errorf("key must have at most %d bytes, not %d", MaxPatternBytes, len(text))
	case !utf8.ValidString(text):
		return pattern{}, errors.New("key must be valid UTF-8")
	}
	// More than one * in a row are one.
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	return pattern{text: text, literal: !strings.ContainsAny(text, "*?")}, nil
}

// matches takes at most len(key) * len(p.text) steps: where a part of the pattern behind
// a * fails, only the last * is made longer.
func (p *pattern) matches(key []byte) bool {
	if p.literal {
		return string(key) == p.text
	}
	at, k := 0, 0
	star, from := -1, 0 // the last * and where what it stands for ends
	for k < len(key) {
		switch {
		case at < len(p.text) && p.text[at] == '*':
			star, from = at, k
			at++
		case at < len(p.text) && p.text[at] == '?':
			at++
			k += characterBytes(key[k:])
		case at < len(p.text) && p.text[at] == key[k]:
			at++
			k++
		case star >= 0:
			from += characterBytes(key[from:])
			at, k = star+1, from
		default:
			return false
		}
	}
	return at == len(p.text) || p.text[at:] == "*"
}

func characterBytes(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return n
}
