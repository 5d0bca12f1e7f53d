//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// median of an odd number of values, or the upper one of the middle two.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spread is the lowest and the highest value.
func spread(values []float64, format string) string {
	return fmt.Sprintf(format+"–"+format, slices.Min(values), slices.Max(values))
}

// interval is the median of values with where it lies.
func interval(values []float64) string {
	i := paired.Of(values)
	return fmt.Sprintf("%.3g (%.3g to %.3g)", i.Median, i.Low, i.High)
}

// printSeries prints figures of subjects, all rounds put together.
func printSeries(title string, series *paired.Series, figures []string, subjects ...string) {
	fmt.Printf("%s: median (lowest–highest)\n%-36s", title, "")
	for _, subject := range subjects {
		fmt.Printf(" %-30s", subject)
	}
	for _, figure := range figures {
		fmt.Printf("\n%-36s", figure)
		for _, subject := range subjects {
			values := series.Values(subject, figure)
			fmt.Printf(" %-30s", fmt.Sprintf("%.4g (%.4g–%.4g)", paired.Of(values).Median, slices.Min(values), slices.Max(values)))
		}
	}
	fmt.Println()
}

// printMachine says what the figures were measured on, and what else ran there.
func printMachine(t *testing.T) {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	require.NoError(t, err)
	load, err := os.ReadFile("/proc/loadavg")
	require.NoError(t, err)
	fmt.Printf("%d CPUs, %s, kernel %s, load before the start %s\n", runtime.NumCPU(), runtime.GOARCH,
		strings.TrimSpace(string(release)), strings.Join(strings.Fields(string(load))[:2], " "))
}
