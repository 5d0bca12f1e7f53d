// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// EscapeJSON writes what is not printable as \u escapes. Outside of strings JSON
// has nothing of the kind but newlines, which no string has.
func EscapeJSON(data []byte) []byte {
	var out []byte
	for _, r := range string(data) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
