package targets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ValidatePath reports a pattern that is no glob; one with ** that is no whole part of a path, and so crosses no
// slash; and one that no absolute path matches by how it begins, with neither / nor **, or by a / at its end. Of alternatives
// each has to begin so.
func ValidatePath(pattern string) error {
	if err := validateGlob(pattern); err != nil {
		return err
	}
	seen := map[string]bool{}
	for open := []string{pattern}; len(open) > 0; {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[p] {
			continue
		}
		seen[p] = true
		if inside, rest, ok := alternatives(p); ok {
			for _, alternative := range slices.Backward(inside) {
				open = append(open, alternative+rest)
			}
		} else if !strings.HasPrefix(p, "/") && p != "**" && !strings.HasPrefix(p, "**/") {
			return fmt.Errorf("must begin with / or **/, not %q", p)
		}
	}
	if strings.HasSuffix(pattern, "/") && pattern != "/" {
		return fmt.Errorf("must not end with /, as no path does: %q", pattern)
	}
	if !wholeParts(pattern) {
		return fmt.Errorf("must have ** as a whole part of a path only, as in /opt/**/bin, not %q", pattern)
	}
	return nil
}

func validateGlob(pattern string) error {
	if len(pattern) > MaxGlobBytes {
		return fmt.Errorf("must have at most %d bytes, not %d", MaxGlobBytes, len(pattern))
	}
	if !doublestar.ValidatePattern(pattern) {
		return fmt.Errorf("is not a valid glob: %q", pattern)
	}
	return nil
}

// wholeParts reports whether each ** is a part of a path. Beside braces it may be, whatever is on their other side.
func wholeParts(pattern string) bool {
	class, depth := false, 0
	beside := func(c byte) bool { return strings.IndexByte("/{}", c) >= 0 || c == ',' && depth > 0 }
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			depth++
		case c == '}':
			depth--
		case strings.HasPrefix(pattern[i:], "**"):
			if i > 0 && !beside(pattern[i-1]) || i+2 < len(pattern) && !beside(pattern[i+2]) {
				return false
			}
			i++
		}
	}
	return true
}

// alternatives splits what begins with them. It finds the ends as doublestar does.
func alternatives(pattern string) (inside []string, rest string, ok bool) {
	if !strings.HasPrefix(pattern, "{") {
		return nil, "", false
	}
	depth, class, start := 0, false, 1
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			depth++
		case c == ',' && depth == 1:
			inside, start = append(inside, pattern[start:i]), i+1
		case c == '}':
			if depth--; depth == 0 {
				return append(inside, pattern[start:i]), pattern[i+1:], true
			}
		}
	}
	return nil, "", false
}
