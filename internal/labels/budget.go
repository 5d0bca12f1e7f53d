package labels

// Budget is a bound of what one user's labels may take.
type Budget uint8

// The budgets of a user.
const (
	BudgetKeys   Budget = iota // different keys, as long as the user has a slot
	BudgetValues               // different values of all keys, in an interval
	BudgetSets                 // different label sets, in an interval
	BudgetBytes                // memory of the label sets of an interval

	NumBudgets = iota
)

// String returns the name used in the configuration and in metrics.
func (b Budget) String() string {
	if b >= NumBudgets {
		return "unknown"
	}
	return [NumBudgets]string{"keys", "values", "sets", "bytes"}[b]
}

// Budgets bound what the labels of each user may take. Those of an interval hold for
// each Channel.
type Budgets struct {
	Users  int // slots: users with budgets of their own; those for whom there is none share one user's
	Keys   int
	Values int
	Sets   int
	// Bytes of label sets, and again as many of remembered reads, which change no data:
	// what is not remembered is decoded again.
	Bytes int
}

// DefaultBudgets leave room for some thousand different label sets a second.
func DefaultBudgets() Budgets {
	return Budgets{Users: 64, Keys: 1024, Values: 16384, Sets: 8192, Bytes: 4 << 20}
}

// Bounds of budgets, which who sets them keeps.
const (
	MaxBudgetUsers = 4096
	MinBudgetBytes = 64 << 10
)
