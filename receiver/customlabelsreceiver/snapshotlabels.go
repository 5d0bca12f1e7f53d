package customlabelsreceiver

import "github.com/customlabels/otelcol-customlabels/internal/labels"

// typeConflictResult is what became of a label whose type is another than its key's.
type typeConflictResult int

const (
	typeConflictRefused     typeConflictResult = iota // it was left out
	typeConflictStringified                           // it was made text

	numTypeConflictResults = iota
)

func (r typeConflictResult) String() string {
	return [numTypeConflictResults]string{"refused", "stringified"}[r]
}

// labelsSnapshot is what a registry of labels has counted.
type labelsSnapshot struct {
	overflow      [labels.NumBudgets]byUser // samples
	budgetUsed    [labels.NumBudgets]byUser
	typeConflicts [numTypeConflictResults]byUser // labels of samples
	users         int64                          // with budgets of their own
	othersSamples int64                          // of the users without
	ruleMatches   []int64                        // by number
}

// readRegistry fills s. Where users share a series, or containers of a user have budgets
// of their own, the one that uses most of a budget is shown.
func (s *labelsSnapshot) readRegistry(r *labels.Registry, series *userSeries, rules int) {
	r.Users(func(u *labels.UserStats) {
		at := otherUsers
		if !u.Others {
			s.users++
			at = series.of(u.UID)
		}
		for b := range u.Overflow {
			s.overflow[b][at] += int64(u.Overflow[b])
			s.budgetUsed[b][at] = max(s.budgetUsed[b][at], int64(u.Used[b]))
		}
		s.typeConflicts[typeConflictRefused][at] += int64(u.Refused)
		s.typeConflicts[typeConflictStringified][at] += int64(u.Stringified)
	})
	s.othersSamples = int64(r.OthersSamples())
	for i := range rules {
		s.ruleMatches = append(s.ruleMatches, int64(r.RuleMatches(i)))
	}
}
