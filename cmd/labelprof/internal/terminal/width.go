// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Width is how many columns of a terminal a text takes that has been escaped: two for each character
// of Chinese, Japanese or Korean and each emoji, none for a mark on the character before.
func Width(s string) int {
	columns := 0
	for _, r := range s {
		columns += runeWidth(r)
	}
	return columns
}

func runeWidth(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// Shorten cuts a string for so many columns, at least one, and says so with an ellipsis.
func Shorten(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	room := columns - 1
	for i, r := range s {
		if room -= runeWidth(r); room < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
