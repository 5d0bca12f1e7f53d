package paired

import "fmt"

// A Verdict is what measurements say of a claim.
type Verdict string

// All verdicts.
const (
	Met       Verdict = "met"
	Missed    Verdict = "MISSED"
	Undecided Verdict = "not decided"
	None      Verdict = "quick form: no verdict" // fewer values than an interval takes
)

// A Claim is that a figure is at most its goal: each value is one measurement of it.
type Claim struct {
	What   string
	Unit   string // of values and goal; empty: a ratio
	Values []float64
	Goal   float64
}

// Verdict judges the claim.
func (c *Claim) Verdict() Verdict {
	i := Of(c.Values)
	switch {
	case i.Coverage == 0:
		return None
	case i.High <= c.Goal:
		return Met
	case i.Low > c.Goal:
		return Missed
	}
	return Undecided
}

// String says it all in one line, the verdict last.
func (c *Claim) String() string {
	i, unit := Of(c.Values), c.Unit
	if unit != "" {
		unit = " " + unit
	}
	interval := fmt.Sprintf("range %.3g to %.3g", i.Low, i.High)
	if i.Coverage > 0 {
		interval = fmt.Sprintf("%.1f%% interval %.3g to %.3g", 100*i.Coverage, i.Low, i.High)
	}
	return fmt.Sprintf("%-46s %6.3g%s (%s, n = %d); goal %.3g%s: %s", c.What, i.Median, unit, interval, len(c.Values), c.Goal, unit, c.Verdict())
}
