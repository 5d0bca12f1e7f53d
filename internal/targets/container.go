package targets

import (
	"fmt"
	"regexp"
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
	plain := regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(pattern, "?") // without classes
	digits := hexDigits + "*?"
	if strings.Contains(plain, "{") {
		digits += "{,}"
	}
	if strings.Trim(plain, digits) != "" {
		return fmt.Errorf("must match ids, which have only hexadecimal digits in lower case, not %q", pattern)
	}
	if !strings.ContainsAny(plain, "*{") && len(plain) != containerIDDigits {
		return fmt.Errorf("must match ids of %d digits, with * for those that are left out, not %q", containerIDDigits, pattern)
	}
	return nil
}
