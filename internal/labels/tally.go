package labels

// tally is what there is to count each time that a sample has a result.
type tally struct {
	user                 *user
	overflow             Budget
	overflowed           bool
	refused, stringified uint32
	matches              []match
}

// needed reports whether there is anything to count.
func (t *tally) needed() bool {
	return t.overflowed || t.user.others || t.refused > 0 || t.stringified > 0 || len(t.matches) > 0
}

func (t *tally) matched(rule int) {
	for i := range t.matches {
		if t.matches[i].rule == uint8(rule) {
			t.matches[i].labels++
			return
		}
	}
	t.matches = append(t.matches, match{rule: uint8(rule), labels: 1})
}
