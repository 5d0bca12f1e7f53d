package samplestore

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// kept are the scans of full segments by the selection that was asked for last: who zooms,
// searches or watches what comes in asks for the same again, and only the newest segment has
// changed. Scans are not changed after they are kept.
type kept struct {
	mu        sync.Mutex
	selection string
	scans     map[*segment]*scan
}

// get returns the scans of a selection, as far as there are any.
func (k *kept) get(selection string) map[*segment]*scan {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.selection != selection {
		return nil
	}
	return k.scans
}

// put keeps the scans of full segments, and no others.
func (k *kept) put(selection string, scans []*scan) {
	full := map[*segment]*scan{}
	for _, s := range scans {
		if s.part.full {
			full[s.part.segment] = s
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for segment := range full {
		if segment.gone.Load() {
			return // who asked began before it left
		}
	}
	k.selection, k.scans = selection, full
}

// forget drops all: a segment has left.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.selection, k.scans = "", nil
}

// selection tells queries apart that select other samples, or group them in another way.
func (q *Query) selection() string {
	var filters []string
	for _, f := range q.Filters {
		values := slices.Clone(f.Values)
		slices.SortFunc(values, func(a, b Value) int { return strings.Compare(fmt.Sprintf("%#v", a), fmt.Sprintf("%#v", b)) })
		filters = append(filters, fmt.Sprintf("%q %#v", f.Key, values))
	}
	slices.Sort(filters)
	text := fmt.Sprintf("%d %d %d %q %#v %q", q.Kind, q.FromMs, q.ToMs, filters, q.Frames, q.Group)
	if c := q.Compare; c != nil {
		text += fmt.Sprintf(" %q %#v %#v %v", c.Key, c.A, c.B, c.Times)
	}
	return text
}
