//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var (
	mappingPrograms = testutil.Size(200, 10, 10)
	mappingRounds   = testutil.Size(5, 1, 1)
	mappingSettle   = testutil.Size(12*time.Second, 2*time.Second, 12*time.Second)
	mappingSteady   = testutil.Size(20*time.Second, 2*time.Second, 20*time.Second)
)

// goalMapping is the share of a CPU that programs may cost which map executable memory all
// the time and publish nothing.
const goalMapping = 0.05

// scaleMapping measures what programs cost that map executable memory all the time, as those
// with a just-in-time compiler do, and never publish a process context: each of their
// mappings may be followed by one. Beside them, in turns, the same programs without
// mappings.
func scaleMapping(t *testing.T) {
	path := filepath.Join(testutil.BuildWriters(t), "spin-plain")
	const never = "60000" // ms of CPU time: more than each gets
	kinds := []struct {
		name string
		args []string
	}{
		{"none", []string{"spin", "--seconds", writerSeconds}},
		{"all the time", []string{"late", "--seconds", writerSeconds, "--warmup-ms", never}},
	}
	fmt.Printf("%d busy programs without a process context, %d samples a second and CPU; CPU of one that the collector takes\n", mappingPrograms, scaleRate)
	fmt.Printf("%6s %16s %16s %16s\n", "round", "map "+kinds[0].name, "map "+kinds[1].name, "difference")
	for round := range mappingRounds {
		var used [2]float64
		for i := range kinds {
			kind := (i + round) % len(kinds) // who is first takes turns
			t.Run(kinds[kind].name, func(t *testing.T) { used[kind] = mappingCPU(t, path, kinds[kind].args) })
		}
		fmt.Printf("%6d %15.2f%% %15.2f%% %+15.2f%%\n", round+1, 100*used[0], 100*used[1], 100*(used[1]-used[0]))
		if testutil.Full() {
			assert.LessOrEqual(t, used[1]-used[0], goalMapping)
		}
	}
}

// mappingCPU is the CPU time a second of a collector beside so many programs, which end with
// the test.
func mappingCPU(t *testing.T, path string, args []string) float64 {
	for range mappingPrograms {
		yield(t, testutil.StartPath(t, path, args...).PID)
	}
	c := startCollector(t, fmt.Sprintf(receiverConfig, fmt.Sprintf("samples_per_second: %d", scaleRate)))
	f := c.steadyFor(mappingSettle, mappingSteady)
	account := c.stop()
	dropped, why := lost(account)
	checkScale(t, account, dropped, why)
	return f.cpuPerSecond
}
