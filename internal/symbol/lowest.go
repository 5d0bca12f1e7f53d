package symbol

import (
	"cmp"
	"math"
	"slices"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
)

const (
	// One part in cutShare of what is held is left out when there is too much. A larger function is, too.
	cutShare = 8
	// maxCuts bounds how often: each sorts all functions. They are enough for 5,000 times what is held.
	maxCuts = 64
)

// lowest are functions of a file, as many as take at most so many bytes, those with the lowest addresses: symbol
// tables have them in other orders, those that are exported last.
type lowest struct {
	entries
	maxBytes  int
	limit     uint64 // those from here on are left out
	truncated bool   // some are left out
	cuts      int
}

func newLowest(maxBytes int) lowest { return lowest{maxBytes: maxBytes, limit: math.MaxUint64} }

// add adds a function, and reports whether there may be more.
func (l *lowest) add(fn *elffile.Function) bool {
	for fn.Value < l.limit && entryBytes+len(fn.Name)+1 <= l.maxBytes/cutShare {
		if l.addFunction(fn, l.maxBytes) {
			return true
		}
		if l.cuts == maxCuts {
			l.truncated = true
			return false
		}
		l.cuts++
		l.cut()
	}
	l.truncated = true
	return true
}

// cut makes room for functions.
func (l *lowest) cut() {
	bytes := l.tidy()
	if bytes+len(l.list)*entryBytes > l.maxBytes-l.maxBytes/cutShare {
		kept := len(l.list) - (len(l.list)+cutShare-1)/cutShare
		l.limit, l.truncated = l.list[kept].start, true
		l.list = l.list[:kept]
	}
	slices.SortFunc(l.list, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	end := 0
	for i := range l.list {
		name := l.nameOf(i)
		l.list[i].name = uint32(end)
		end += copy(l.names[end:], name)
		l.names[end] = 0
		end++
	}
	l.names = l.names[:end]
}
