//go:build linux && (amd64 || arm64)

package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The goals.
const (
	goalResidentBytes = 40 << 20 // over the bare collector, at defaults
	goalMapBytes      = 24 << 20 // at defaults
)

const (
	footprintLabels = 10
	mib             = 1 << 20
)

var (
	footprintSettle = testutil.Size(10*time.Second, time.Second, 10*time.Second) // two batches
	footprintSteady = testutil.Size(15*time.Second, 2*time.Second, 15*time.Second)
	// footprintRates in Hz; 0 is the default.
	footprintRates = testutil.Size([]int{0, 20, 97, 997, 10_000}, []int{0, 97}, []int{0, 97})
)

// TestBenchFootprint measures the receiver in the collector that ocb builds,
// with the nop exporter, against the same collector with nothing in it.
func TestBenchFootprint(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	printMachine(t)

	bare := measureBare(t)
	fmt.Printf("bare collector: %.1f MiB resident (%.1f anonymous), %.2f ms CPU a second\n",
		float64(bare.resident.total)/mib, float64(bare.resident.anonymous)/mib, bare.cpuPerSecond*1e3)

	// Half of the writers use one ABI, half the other.
	startLoad(t, "writer-v1-lib", "--labels", fmt.Sprint(footprintLabels))
	startLoad(t, "writer-ctx-exe", "--labels", fmt.Sprint(footprintLabels/2))
	fmt.Printf("with the receiver, every CPU busy with labelled writers; resident memory is over the bare collector's\n")
	fmt.Printf("%8s %12s %12s %12s %10s %10s %12s %10s %8s\n",
		"Hz", "resident MiB", "anonymous", "buffers", "maps MiB", "CPU µs", "CPU of one", "samples", "lost")
	for _, hz := range footprintRates {
		checkFootprint(t, hz, bare)
	}
}

// A footprint is what a collector takes once it is steady.
type footprint struct {
	resident     residence
	maps         int64
	cpuPerSecond float64
}

func (c *collector) steady() footprint { return c.steadyFor(footprintSettle, footprintSteady) }

func (c *collector) steadyFor(settle, steady time.Duration) footprint {
	time.Sleep(settle)
	start, before := time.Now(), cpuTime(c.t, c.pid())
	time.Sleep(steady)
	used, d := cpuTime(c.t, c.pid())-before, time.Since(start)
	return footprint{
		resident:     readResidence(c.t, c.pid()),
		maps:         mapBytes(c.t, c.pid(), profilers()[ours].innerMaps),
		cpuPerSecond: used.Seconds() / d.Seconds(),
	}
}

func measureBare(t *testing.T) footprint {
	c := startCollector(t, bareConfig)
	defer c.stop()
	return c.steady()
}

func checkFootprint(t *testing.T, hz int, bare footprint) {
	config, name := fmt.Sprintf("samples_per_second: %d", hz), fmt.Sprint(hz)
	if hz == 0 {
		config, name = "", "default"
	}
	c := startCollector(t, fmt.Sprintf(receiverConfig, config))
	f := c.steady()
	account := c.stop()
	life := time.Since(c.readyAt)
	require.NotNil(t, account, "the receiver gave no account: %s", c.output.String())
	require.NotZero(t, account["emitted"])

	perSecond := float64(account["hits"]) / life.Seconds()
	resident := f.resident.total - bare.resident.total
	dropped, why := lost(account)
	fmt.Printf("%8s %12.1f %12.1f %12.1f %10.1f %10.1f %11.2f%% %10d %8d%s\n", name,
		float64(resident)/mib, float64(f.resident.anonymous-bare.resident.anonymous)/mib,
		float64(f.resident.buffers)/mib, float64(f.maps)/mib,
		1e6*(f.cpuPerSecond-bare.cpuPerSecond)/perSecond, 100*(f.cpuPerSecond-bare.cpuPerSecond),
		account["hits"], dropped, why)

	if !testutil.Full() {
		return // a moment says nothing of rates and memory
	}
	assert.Greater(t, perSecond, 0.9*float64(max(hz, 1)*runtime.NumCPU()), "%s Hz: the CPUs were not sampled at this rate", name)
	assert.Zero(t, dropped, "%s Hz: samples lost", name)
	assert.EqualValues(t, account["hits"], account["emitted"]+account["filtered_idle"], "%s Hz", name)
	if hz == 0 {
		assert.LessOrEqual(t, resident, int64(goalResidentBytes), "resident memory over the bare collector")
		assert.LessOrEqual(t, f.maps, int64(goalMapBytes), "BPF maps")
	}
}
