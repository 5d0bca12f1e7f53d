package labels

import "strings"

// PrometheusName returns a name that Prometheus and the backends with its rules take for a label, once they have
// written its dots as underscores ([Undotted]): other characters than letters, digits, underscores and dots become
// underscores, a digit at the beginning gets one before it, and several underscores or dots at the beginning become one,
// since what begins with two is the backend's own. Names may become equal. "" stays.
func PrometheusName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
	rest := strings.TrimLeft(name, "_.")
	if len(name)-len(rest) > 1 || len(rest) == len(name) && name != "" && name[0] <= '9' {
		return "_" + rest
	}
	return name
}

// Undotted returns a name as these backends keep it: two names that are equal then are one.
func Undotted(name string) string { return strings.ReplaceAll(name, ".", "_") }
