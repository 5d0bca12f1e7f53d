package labels

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Escape returns s as valid UTF-8: each byte that is not part of any becomes
// \xNN. Different strings stay different, because the backslash of a \x that s
// has already is escaped, too.
func Escape(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, `\x`) {
		return s
	}
	const hex = "0123456789abcdef"
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || strings.HasPrefix(s[i:], `\x`) {
			b.WriteString(`\x`)
			b.WriteByte(hex[s[i]>>4])
			b.WriteByte(hex[s[i]&15])
			i++
			continue
		}
		b.WriteString(s[i : i+size])
		i += size
	}
	return b.String()
}

// escapes reports whether Escape changes a value.
func escapes(value []byte) bool {
	return !utf8.Valid(value) || bytes.Contains(value, []byte(`\x`))
}
