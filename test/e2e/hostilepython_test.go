//go:build linux && (amd64 || arm64)

package e2e

import "regexp"

// unsupportedPython is a mode of its own program.
const unsupportedPython = "an offset where no field can be"

// hostilePythons are the modes of testdata/hostile/python.c.
func hostilePythons() map[string]hostileRuntime {
	one := regexp.MustCompile(`^hostile_[ab]$`)
	gone := regexp.MustCompile(`^(hostile_[ab]|<gone>)$`)
	return map[string]hostileRuntime{
		"valid":             {functions: one},
		"changing":          {functions: gone},
		"freed":             {functions: gone},
		"too-many":          {functions: gone},
		"large":             {functions: gone},
		"evaluation-cycle":  {functions: one},
		"long-name":         {functions: regexp.MustCompile(`(?s)^hostile_a.{0,1000}.{0,15}$`)},
		"wide-name":         {functions: regexp.MustCompile("^\uFFFD{9}$")},
		"control-name":      {functions: regexp.MustCompile("^\uFFFD\\[2J\uFFFD{5}$")},
		"no-references":     {functions: regexp.MustCompile(`^<gone>$`)},
		"no-text":           {functions: regexp.MustCompile(`^<gone>$`)},
		"no-file":           {functions: gone},
		"long-lines":        {functions: gone},
		"bad-lines":         {functions: one},
		"frame-cycle":       {},
		"elsewhere":         {},
		"no-thread":         {},
		"thread-cycle":      {},
		"interpreter-cycle": {},
		"kernel-frame":      {},
		"no-frame-memory":   {},
		"no-address":        {},
		"other-type":        {},
		"no-name":           {},
		unsupportedPython:   {log: "offset"},
	}
}
