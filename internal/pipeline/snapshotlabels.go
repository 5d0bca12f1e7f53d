package pipeline

import "github.com/customlabels/otelcol-customlabels/internal/labels"

// TypeConflictResult is what became of a label whose type is another than its key's: it was
// left out, or made text.
type TypeConflictResult int

// What becomes of it.
const (
	TypeConflictRefused     TypeConflictResult = iota // refused
	TypeConflictStringified                           // stringified

	NumTypeConflictResults = iota
)

// LabelsSnapshot is what a registry of labels has counted.
type LabelsSnapshot struct {
	Overflow      [labels.NumBudgets]ByUser                     // samples
	BudgetUsed    [labels.NumBudgets][maxUserSeries + 1]float64 // parts, as in ByUser
	TypeConflicts [NumTypeConflictResults]ByUser                // labels of samples
	OthersSamples int64                                         // of the users without
	RuleMatches   []int64                                       // by number
}

// readRegistry fills s. Where users share a series, or containers of a user have budgets
// of their own, the one that uses most of a budget is shown.
func (s *LabelsSnapshot) readRegistry(r *labels.Registry, series *userSeries, o *LabelOptions) {
	budgets := [labels.NumBudgets]int{
		labels.BudgetKeys: o.Budgets.Keys, labels.BudgetValues: o.Budgets.Values, labels.BudgetSets: o.Budgets.Sets, labels.BudgetBytes: o.Budgets.Bytes,
	}
	r.Users(func(u *labels.UserStats) {
		at := OtherUsers
		if !u.Others {
			at = series.of(u.UID)
		}
		for b := range u.Overflow {
			s.Overflow[b][at] += int64(u.Overflow[b])
			s.BudgetUsed[b][at] = max(s.BudgetUsed[b][at], float64(u.Used[b])/float64(budgets[b]))
		}
		s.TypeConflicts[TypeConflictRefused][at] += int64(u.Refused)
		s.TypeConflicts[TypeConflictStringified][at] += int64(u.Stringified)
	})
	s.OthersSamples = int64(r.OthersSamples())
	for i := range o.Rules {
		s.RuleMatches = append(s.RuleMatches, int64(r.RuleMatches(i)))
	}
}
