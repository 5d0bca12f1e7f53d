// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"strings"
	"unicode/utf8"
)

// MaxTextBytes bounds every string that outlives the batch it came in.
const MaxTextBytes = 1024

// Texts are the texts of a batch, each once: any number of entries may refer to one.
type Texts map[string]string

// Of returns a text, cut, that shares no memory with the batch, which is much larger.
func (t Texts) Of(s string) string {
	s = cut(s)
	known, ok := t[s]
	if !ok {
		known = strings.Clone(s)
		t[known] = known
	}
	return known
}

// cut shortens to MaxTextBytes, between two characters.
func cut(s string) string {
	if len(s) <= MaxTextBytes {
		return s
	}
	end := MaxTextBytes
	for end > MaxTextBytes-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
