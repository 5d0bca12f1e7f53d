package targets

import (
	"fmt"
	"strings"
)

// containerIDDigits are what the id of a container has, in lower case.
const (
	containerIDDigits = 64
	hexDigits         = "0123456789abcdef"
)

func isContainerID(s string) bool {
	return len(s) == containerIDDigits && strings.Trim(s, hexDigits) == ""
}

// validateContainerID reports a pattern that is no glob, and one that no container's id matches.
func validateContainerID(pattern string) error {
	if err := validateGlob(pattern); err != nil {
		return err
	}
	if scheme, id, found := strings.Cut(pattern, "://"); found {
		return fmt.Errorf("must be the id alone, %q, not %q with the runtime's name %q", id, pattern, scheme)
	}
	if strings.Contains(pattern, "/") {
		return fmt.Errorf("must be the id alone, without /, not %q", pattern)
	}
	if !strings.ContainsAny(pattern, `*?[{\`) && !isContainerID(pattern) {
		return fmt.Errorf("must be a whole id, %d hexadecimal digits in lower case, or a glob, such as %q, not %q",
			containerIDDigits, strings.ToLower(pattern)+"*", pattern)
	}
	g := idGlob{text: pattern}
	low, high := g.length(false)
	if g.other {
		return fmt.Errorf("must match ids, which have only hexadecimal digits in lower case, not %q", pattern)
	}
	if containerIDDigits < low || containerIDDigits > high {
		return fmt.Errorf("must match ids of %d digits, with * for those that are left out, not %q", containerIDDigits, pattern)
	}
	return nil
}

// idGlob reads a valid glob for ids.
type idGlob struct {
	text  string
	at    int
	other bool // there is what no id has
}

// length returns how long what matches is, at least and at most, up to the end of the glob, or of one of several
// alternatives.
func (g *idGlob) length(alternative bool) (low, high int) {
	for ; g.at < len(g.text); g.at++ {
		switch c := g.text[g.at]; {
		case alternative && (c == ',' || c == '}'):
			return low, high
		case c == '*':
			high += containerIDDigits
			continue
		case c == '{':
			least, most := g.alternatives()
			low, high = low+least, high+most
			continue
		case c == '[':
			g.class()
		case c == '?':
		default:
			if c == '\\' {
				g.at++
			}
			g.other = g.other || strings.IndexByte(hexDigits, g.text[g.at]) < 0
		}
		low, high = low+1, high+1
	}
	return low, high
}

// alternatives reads up to the brace that ends them.
func (g *idGlob) alternatives() (low, high int) {
	low = containerIDDigits * MaxGlobBytes
	for g.text[g.at] != '}' {
		g.at++
		least, most := g.length(true)
		low, high = min(low, least), max(high, most)
	}
	return low, high
}

// class reads up to the bracket that ends it.
func (g *idGlob) class() {
	for g.at++; g.text[g.at] != ']'; g.at++ {
		if g.text[g.at] == '\\' {
			g.at++
		}
	}
}
