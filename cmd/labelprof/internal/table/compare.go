// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"io"
	"slices"
)

// comparison sets what was sampled in the processes that tell their truth against
// it. Both sides are shares of labelled CPU time; a process none of whose samples
// has a label is on neither side.
type comparison struct {
	processes   int // on both sides
	expected    int // that say what is right
	sampledNs   int64
	unlabelled  int64 // CPU time without labels in these processes, in ns
	trueNs      int64
	sampledRows map[rowKey]int64
	trueRows    map[rowKey]int64
	trueValues  map[rowKey][]value
}

func (t *Table) compare(truths []Truth) comparison {
	c := comparison{
		expected:    len(truths),
		sampledRows: map[rowKey]int64{},
		trueRows:    map[rowKey]int64{},
		trueValues:  map[rowKey][]value{},
	}
	for _, tr := range truths {
		if !t.hasLabels(tr.PID) {
			continue
		}
		c.processes++
		for key, ns := range t.shares {
			switch {
			case key.pid != tr.PID:
			case !t.isLabelled(key.row):
				c.unlabelled += ns
			default:
				c.sampledRows[key.row] += ns
				c.sampledNs += ns
			}
		}
		c.addTruth(t.by, tr)
	}
	return c
}

func (c *comparison) addTruth(by []string, tr Truth) {
	for _, set := range tr.Sets {
		values := make([]value, len(by))
		for i, key := range by {
			values[i].text, values[i].present = set.Labels[key]
		}
		if !labelled(values) {
			continue
		}
		key := encodeValues(values)
		c.trueRows[key] += set.CPUNs
		c.trueValues[key] = values
		c.trueNs += set.CPUNs
	}
}

func (t *Table) hasLabels(pid int64) bool {
	for key := range t.shares {
		if key.pid == pid && t.isLabelled(key.row) {
			return true
		}
	}
	return false
}

// isLabelled holds for every key but the one of all labels absent.
func (t *Table) isLabelled(key rowKey) bool {
	return key != encodeValues(make([]value, len(t.by)))
}

// shares are the parts of a row among the processes that tell their truth, sampled and true.
func (c comparison) shares(r *row) (measured, truth float64, ok bool) {
	key := encodeValues(r.values)
	_, sampled := c.sampledRows[key]
	_, told := c.trueRows[key]
	if r.values == nil || !sampled && !told || c.sampledNs == 0 || c.trueNs == 0 {
		return 0, 0, false
	}
	return float64(c.sampledRows[key]) / float64(c.sampledNs), float64(c.trueRows[key]) / float64(c.trueNs), true
}

// columns are the shares and how many points they are apart.
func (c comparison) columns(r *row) []string {
	measured, truth, ok := c.shares(r)
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("%.1f %%", 100*measured), fmt.Sprintf("%.1f %%", 100*truth), fmt.Sprintf("%+.1f", 100*(measured-truth))}
}

// missing are the label values that have a truth and no sample.
func (c comparison) missing(t *Table) [][]value {
	var missing [][]value
	for key, values := range c.trueValues {
		if _, ok := t.rows[key]; !ok {
			missing = append(missing, values)
		}
	}
	slices.SortFunc(missing, func(a, b []value) int { return slices.CompareFunc(a, b, compareValues) })
	return missing
}

func renderComparison(w io.Writer, c comparison) {
	fmt.Fprintf(w, "measured: shares of the labelled CPU of %d processes (%s of theirs is unlabelled);\n",
		c.processes, percent(c.unlabelled, c.unlabelled+c.sampledNs))
	fmt.Fprint(w, "true: what these processes measured themselves")
	if others := c.expected - c.processes; others > 0 {
		fmt.Fprintf(w, "; %d more did, and have no such labels", others)
	}
	fmt.Fprint(w, "\n\n")
}
