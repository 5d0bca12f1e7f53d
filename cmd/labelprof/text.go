// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape makes a string safe for a terminal and keeps it unambiguous: what is not
// printable, a backslash, and bytes that are no UTF-8 become escapes as in Go.
func escape(s string) string {
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

// validUTF8 returns a string as it is, or escaped when it is not UTF-8.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return escape(s)
}

func hexDigits(b byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[b>>4], digits[b&15]})
}

// shorten cuts a string for a column and says so with an ellipsis.
func shorten(s string, columns int) string {
	if utf8.RuneCountInString(s) <= columns {
		return s
	}
	return string([]rune(s)[:columns-1]) + "…"
}
