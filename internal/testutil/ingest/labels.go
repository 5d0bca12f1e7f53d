package ingest

import (
	"fmt"
	"regexp"
	"strings"
)

// labelName is what Pyroscope takes, after it has written dots as underscores.
var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// Labels are those of one series, by the names that Pyroscope keeps.
type Labels map[string]string

// Add adds a label, or returns why Pyroscope refuses the profile that has it: by name, or
// because another label has become of the same name.
func (l Labels) Add(name, value string) error {
	kept := strings.ReplaceAll(name, ".", "_")
	if !labelName.MatchString(kept) {
		return fmt.Errorf("invalid label name %q", name)
	}
	if before, twice := l[kept]; twice && before != value {
		return fmt.Errorf("duplicate label name %q: %q and %q", name, before, value)
	}
	l[kept] = value
	return nil
}
