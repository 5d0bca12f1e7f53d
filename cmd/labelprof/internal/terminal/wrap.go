// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"
)

// Wrap breaks prose between words into lines of so many characters; a longer word has a line of
// its own.
func Wrap(text string, columns int) string {
	var b strings.Builder
	at := 0
	for word := range strings.FieldsSeq(text) {
		n := Width(word)
		switch {
		case at == 0:
		case at+1+n > columns:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
