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
	if !ok || end < 0 || len(rest) < end+rustHashBytes || rest[end+rustHashBytes-1] != 'E' || !strings.Contains(rest[:end], "_") {
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
