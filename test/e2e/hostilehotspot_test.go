//go:build linux && (amd64 || arm64)

package e2e

import "regexp"

// hostileHotSpots are the modes of testdata/hostile/hotspot.c.
func hostileHotSpots() map[string]hostileRuntime {
	one := regexp.MustCompile(`^hostile\.hostile_a$`)
	gone := regexp.MustCompile(`^(hostile\.(hostile_[ab])?|<gone>)$`)
	onlyGone := regexp.MustCompile(`^<gone>$`)
	return map[string]hostileRuntime{
		"valid":       {functions: one},
		"interpreted": {functions: one},

		"tables-unmapped":  {log: "HotSpot"},
		"tables-kernel":    {log: "HotSpot"},
		"tables-endless":   {log: "a table without an end"},
		"tables-cycle":     {log: "a table without an end"},
		"tables-stride":    {log: "entries of 9223372036854775808 bytes"},
		"tables-fields":    {log: "fields beyond the entries of a table"},
		"tables-spread":    {log: "tables that are spread over memory"},
		"tables-change":    {functions: gone, either: true},
		"names-endless":    {log: "names without an end"},
		"names-unmapped":   {log: "HotSpot"},
		"offset-large":     {log: "HotSpot 17 without CodeBlob._name"},
		"offset-outside":   {log: "HotSpot 17 whose structs have"},
		"struct-large":     {log: "HotSpot 17 whose structs have 4096 bytes"},
		"version-unmapped": {log: "read version of HotSpot"},
		"version-99":       {log: "HotSpot 99"},

		"heaps-many":     {log: "HotSpot with 4294967295 code heaps"},
		"heaps-unmapped": {log: "no code heaps yet"},
		"heaps-cycle":    {functions: one},
		"heaps-all":      {log: "HotSpot with code heaps from"},
		"heaps-shift":    {log: "HotSpot with code heaps from"},
		"heaps-reversed": {log: "HotSpot with code heaps from"},
		"heaps-change":   {functions: one, either: true},
		"heaps-files":    {},

		"segments-unmapped": {},
		"segments-long":     {},
		"segments-below":    {},
		"blob-name":         {},
		"blob-small":        {},
		"blob-stub":         {functions: regexp.MustCompile("^hostile_a\uFFFD\\[2J\uFFFD of a stub$")},
		"blob-stub-long":    {functions: onlyGone},
		"frame-large":       {functions: one},
		"frame-cycle":       {functions: one},
		"frame-kernel":      {functions: one},
		"interpreted-cycle": {functions: one},

		"code-change":      {functions: gone},
		"too-many":         {functions: gone},
		"large":            {functions: gone},
		"method-unmapped":  {functions: onlyGone},
		"method-constant":  {functions: onlyGone},
		"method-freed":     {functions: gone},
		"name-change":      {functions: gone},
		"name-long":        {functions: regexp.MustCompile(`(?s)^hostile\.hostile_a.*$`)},
		"name-control":     {functions: regexp.MustCompile("^hostile\\.\uFFFD\\[2J\uFFFD+$")},
		"name-index":       {functions: regexp.MustCompile(`^hostile\.$`)},
		"pool-endless":     {functions: gone},
		"lines-endless":    {functions: gone},
		"scope-cycle":      {functions: onlyGone},
		"scopes-elsewhere": {functions: onlyGone},
		"scopes-outside":   {functions: onlyGone},
		"pc-disorder":      {functions: onlyGone},
	}
}
