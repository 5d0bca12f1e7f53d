// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a string safe for a terminal and keeps it unambiguous: what is not
// printable, a backslash, and bytes that are no UTF-8 become escapes as in Go.
func Escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + hexDigits(s[i]))
		case r == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// ValidUTF8 returns a string as it is, or escaped when it is not UTF-8.
func ValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return Escape(s)
}

func hexDigits(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}
