package symbol

import (
	"strconv"
	"strings"
)

// rustHashBytes are those of 17h0123456789abcdefE.
const rustHashBytes = 20

// keepUnderscores makes the demangler keep the underscores that identifiers of a Rust name in legacy mangling
// (_ZN, identifiers with their lengths, 17h and a hash, E) begin with: it takes one for a separator. rustc puts
// one of its own only before an escape, which begins with $.
func keepUnderscores(name string) string {
	rest, ok := strings.CutPrefix(name, "_ZN")
	end := strings.LastIndex(rest, "17h")
	if !ok || end < 0 || !isRustHash(rest[end:]) || !strings.Contains(rest[:end], "_") {
		return name
	}
	var kept strings.Builder
	kept.WriteString("_ZN")
	for identifiers := rest[:end]; identifiers != ""; {
		digits := len(identifiers) - len(strings.TrimLeft(identifiers, "0123456789"))
		n, err := strconv.Atoi(identifiers[:digits])
		if err != nil || n > len(identifiers)-digits {
			return name
		}
		identifier := identifiers[digits : digits+n]
		identifiers = identifiers[digits+n:]
		if strings.HasPrefix(identifier, "_") && !strings.HasPrefix(identifier, "_$") {
			identifier = "_" + identifier
		}
		kept.WriteString(strconv.Itoa(len(identifier)))
		kept.WriteString(identifier)
	}
	return kept.String() + rest[end:]
}

// isRustHash reports whether a name ends with a hash, by which the demangler tells Rust's from C++'s: 16 hexadecimal
// digits, of which five differ. What a compiler appends begins with a point.
func isRustHash(s string) bool {
	if len(s) < rustHashBytes || s[rustHashBytes-1] != 'E' || len(s) > rustHashBytes && s[rustHashBytes] != '.' {
		return false
	}
	seen := map[rune]bool{}
	for _, digit := range s[3 : rustHashBytes-1] {
		if !strings.ContainsRune("0123456789abcdef", digit) {
			return false
		}
		seen[digit] = true
	}
	return len(seen) >= 5
}
