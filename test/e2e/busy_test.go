//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// maxOthersCPU is the share of a machine's CPUs that others may take while a figure is
// measured that depends on free ones.
const maxOthersCPU = 0.1

// othersCPU begins to measure, and returns what tells the share of the machine's CPUs that
// was taken since by what is neither this process nor a child that it has waited for: by
// other programs, and by other guests of a virtual machine's host.
func othersCPU(t *testing.T) (share func() float64) {
	t.Helper()
	begun, ours, all := time.Now(), ownCPU(t), machineCPU(t)
	return func() float64 {
		others := machineCPU(t) - all - (ownCPU(t) - ours)
		return max(0, others.Seconds()) / time.Since(begun).Seconds() / float64(runtime.NumCPU())
	}
}

// measurable reports whether a figure that depends on free CPUs is to be held against its
// goal: in full runs, where others took little.
func measurable(others float64) bool {
	held := testutil.Full() && others <= maxOthersCPU
	if !held {
		fmt.Printf("the goals of figures that depend on free CPUs are not asserted: others took %.0f%% of the CPUs (asserted in full runs up to %.0f%%)\n",
			100*others, 100*maxOthersCPU)
	}
	return held
}

func ownCPU(t *testing.T) (used time.Duration) {
	t.Helper()
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		require.NoError(t, unix.Getrusage(who, &u))
		used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return used
}

// machineCPU is the time of all CPUs in which they did not idle.
func machineCPU(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	require.NoError(t, err)
	var user, nice, system, idle, iowait, irq, softirq, steal int64
	line, _, _ := strings.Cut(string(text), "\n")
	_, err = fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal)
	require.NoError(t, err, line)
	const ticksPerSecond = 100 // USER_HZ of all supported architectures
	return time.Duration(user+nice+system+irq+softirq+steal) * time.Second / ticksPerSecond
}
