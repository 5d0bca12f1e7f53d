package pipeline

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

// selectorMatches knows which selectors have matched a process, whatever came of it.
type selectorMatches struct {
	selectors []targets.Selector
	included  int      // of them, the first
	names     []string // as in the configuration: include[0]
	matched   []atomic.Bool
	left      atomic.Int32 // number of selectors that have matched nothing yet
}

func newSelectorMatches(s *targets.Selection) *selectorMatches {
	m := &selectorMatches{included: len(s.Include)}
	for i := range s.Include {
		m.names = append(m.names, fmt.Sprintf("include[%d]", i))
	}
	for i := range s.Exclude {
		m.names = append(m.names, fmt.Sprintf("exclude[%d]", i))
	}
	m.selectors = slices.Concat(s.Include, s.Exclude)
	m.matched = make([]atomic.Bool, len(m.selectors))
	m.left.Store(int32(len(m.selectors)))
	return m
}

// note costs nothing once each selector has matched.
func (m *selectorMatches) note(p *targets.Process) {
	if m.left.Load() == 0 {
		return
	}
	for i := range m.selectors {
		if !m.matched[i].Load() && m.selectors[i].Matches(p) && m.matched[i].CompareAndSwap(false, true) {
			m.left.Add(-1)
		}
	}
}

// unmatched describes those that have matched nothing.
func (m *selectorMatches) unmatched() (include, exclude []string) {
	for i := range m.selectors {
		switch {
		case m.matched[i].Load():
		case i < m.included:
			include = append(include, m.describe(i))
		default:
			exclude = append(exclude, m.describe(i))
		}
	}
	return include, exclude
}

// where describes those of which that holds.
func (m *selectorMatches) where(holds func(*targets.Selector) bool) (all []string) {
	for i := range m.selectors {
		if holds(&m.selectors[i]) {
			all = append(all, m.describe(i))
		}
	}
	return all
}

func (m *selectorMatches) describe(i int) string { return m.names[i] + ": " + m.selectors[i].String() }
