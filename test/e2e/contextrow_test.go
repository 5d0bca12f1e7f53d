//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A property is what samples of a program are checked for.
type property int

const (
	ofResource   property = iota // the program's own service.name
	ofLink                       // trace and span id, or what the writer has of them
	ofFlags                      // trace_sampled
	ofAttributes                 // names and values, all of them and no others
	ofUpdate                     // for each publication: the samples from then on have it
	ofFork                       // a child by fork: what it inherits and what it publishes itself
	ofExec                       // another program, run by this one: nothing of it
	numProperties
)

var propertyNames = [numProperties]string{"resource", "link", "flags", "attributes", "update", "fork", "exec"}

// contextRow is what the samples of one writer were checked for.
type contextRow struct {
	writer  string
	lacks   []property // what the writer has not got
	checked [numProperties]int
	failed  [numProperties]int
	// late samples were emitted before the receiver had found what they had by then.
	late int
	// delays from a publication to the first sample that has it, and to the first sample.
	delays, waits []time.Duration
}

const maxShownFailures = 5 // of a cell

// check counts a check, and says what is wrong where it fails.
func (row *contextRow) check(t *testing.T, p property, good bool, format string, args ...any) {
	row.checked[p]++
	if good {
		return
	}
	if row.failed[p]++; row.failed[p] <= maxShownFailures {
		t.Logf("%s: %s: %s", row.writer, propertyNames[p], fmt.Sprintf(format, args...))
	}
}

// requireContextTable prints rows, and fails unless every cell was checked without a failure.
func requireContextTable(t *testing.T, bounds *testutil.Bounds, rows []*contextRow, others float64) (checked int) {
	fmt.Printf("%-20s", "samples checked")
	for _, name := range propertyNames {
		fmt.Printf(" %10s", name)
	}
	fmt.Printf("   from publication to the first sample with it p50, p99 (to the first sample)\n")
	for _, row := range rows {
		fmt.Printf("%-20s", row.writer)
		for p := range numProperties {
			cell := fmt.Sprint(row.checked[p])
			switch {
			case slices.Contains(row.lacks, p):
				cell = "-"
				assert.Zero(t, row.checked[p])
			case row.failed[p] > 0:
				cell += fmt.Sprintf(" (%d failed)", row.failed[p])
				fallthrough
			default:
				assert.NotZero(bounds, row.checked[p], "%s: %s", row.writer, propertyNames[p])
				assert.Zero(t, row.failed[p], "%s: %s", row.writer, propertyNames[p])
			}
			checked += row.checked[p]
			fmt.Printf(" %10s", cell)
		}
		fmt.Printf("   %s (%s) of %d; %d samples before it was found\n", quantiles(row.delays), quantiles(row.waits), len(row.delays), row.late)
	}
	// A sample waits for names a second at most, in which a busy machine may not let the
	// receiver run.
	prompt := others <= maxOthersCPU
	if !prompt {
		fmt.Printf("others took %.0f%% of the CPUs: how soon names are found is not asserted (up to %.0f%% it is)\n", 100*others, 100*maxOthersCPU)
	}
	for _, row := range rows {
		require.NotEmpty(t, row.delays, row.writer)
		if !prompt {
			continue
		}
		assert.Zero(bounds, row.late, row.writer)
		// When a busy machine gives the program no CPU time, there is no sample to have it.
		var late []time.Duration
		for i := range row.delays {
			late = append(late, row.delays[i]-row.waits[i])
		}
		slices.Sort(late)
		assert.LessOrEqual(bounds, late[len(late)/2], contextGoal, row.writer)
	}
	fmt.Printf("goal for p50: %v at %d samples a second; %d checks\n", contextGoal, contextRate, checked)
	return checked
}

func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	all = slices.Sorted(slices.Values(all))
	var text []string
	for _, d := range []time.Duration{all[len(all)/2], all[len(all)*99/100]} {
		text = append(text, d.Round(time.Millisecond).String())
	}
	return strings.Join(text, ", ")
}
