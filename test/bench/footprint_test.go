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
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

// The goals.
const (
	goalResidentMiB = 40 // over the bare collector, at defaults
	goalMapsMiB     = 24 // at defaults
)

const (
	footprintLabels = 10
	mib             = 1 << 20
)

var (
	footprintRounds = testutil.Size(6, 1, 1)
	footprintSettle = testutil.Size(10*time.Second, time.Second, 10*time.Second) // two batches
	footprintSteady = testutil.Size(15*time.Second, 2*time.Second, 15*time.Second)
	// footprintRates in Hz; 0 is the default.
	footprintRates = testutil.Size([]int{0, 20, 97, 997, 10_000}, []int{0, 97}, []int{0, 97})
)

// What is measured of a collector: footprintBare has nothing in it, footprintDefault the receiver
// at its defaults.
const (
	footprintBare    = "nothing in it"
	footprintDefault = "default"
	residentFigure   = "resident MiB"
	anonymousFigure  = "anonymous MiB"
	buffersFigure    = "buffers MiB"
	mapsFigure       = "maps MiB"
	cpuOfOneFigure   = "CPU % of one"
	cpuSampleFigure  = "CPU µs a hit" // of the whole collector
)

// TestBenchFootprint measures the receiver in the collector that ocb builds,
// with the nop exporter, and the same collector with nothing in it: every CPU
// is busy with labelled writers.
func TestBenchFootprint(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	run := paired.Start(t, rawDir, "footprint")
	// Half of the writers use one ABI, half the other.
	startLoad(t, "writer-v1-lib", "--labels", fmt.Sprint(footprintLabels))
	startLoad(t, "writer-ctx-exe", "--labels", fmt.Sprint(footprintLabels/2))

	subjects, rates := []string{footprintBare}, map[string]int{}
	for _, hz := range footprintRates {
		name := footprintDefault
		if hz > 0 {
			name = fmt.Sprintf("%d Hz", hz)
		}
		rates[name], subjects = hz, append(subjects, name)
	}
	series := run.Rounds("labelled programs", footprintRounds, subjects, func(subject string) paired.Figures {
		if subject == footprintBare {
			return measureBare(t).figures()
		}
		return measureFootprint(t, rates[subject])
	})
	printSeries("collectors, whole", series, []string{
		residentFigure, anonymousFigure, buffersFigure, mapsFigure, cpuOfOneFigure, cpuSampleFigure,
	}, subjects...)
	fmt.Println("over the collector with nothing in it:")
	for _, subject := range subjects[1:] {
		fmt.Printf("%-10s %s MiB resident, %s %% of one CPU\n", subject,
			interval(series.Differences(subject, footprintBare, residentFigure)), interval(series.Differences(subject, footprintBare, cpuOfOneFigure)))
	}
	run.Judge(
		paired.Claim{What: "resident memory of the receiver, at defaults", Unit: "MiB",
			Values: series.Differences(footprintDefault, footprintBare, residentFigure), Goal: goalResidentMiB},
		paired.Claim{What: "BPF maps, at defaults", Unit: "MiB",
			Values: series.Values(footprintDefault, mapsFigure), Goal: goalMapsMiB},
	)
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

func (f footprint) figures() paired.Figures {
	return paired.Figures{
		residentFigure:  float64(f.resident.total) / mib,
		anonymousFigure: float64(f.resident.anonymous) / mib,
		buffersFigure:   float64(f.resident.buffers) / mib,
		mapsFigure:      float64(f.maps) / mib,
		cpuOfOneFigure:  100 * f.cpuPerSecond,
	}
}

// measureFootprint has a collector sample at a rate, and checks that nothing is lost.
func measureFootprint(t *testing.T, hz int) paired.Figures {
	config := ""
	if hz > 0 {
		config = fmt.Sprintf("samples_per_second: %d", hz)
	}
	c := startCollector(t, fmt.Sprintf(receiverConfig, config))
	f := c.steady()
	account := c.stop()
	life := time.Since(c.readyAt)
	require.NotNil(t, account, "the receiver gave no account: %s", c.output.String())
	require.NotZero(t, account["emitted"])

	perSecond := float64(account["hits"]) / life.Seconds()
	figures := f.figures()
	figures[cpuSampleFigure] = 1e6 * f.cpuPerSecond / perSecond
	if testutil.Full() { // a moment says nothing of rates
		dropped, why := lost(account)
		assert.Greater(t, perSecond, 0.9*float64(max(hz, 1)*runtime.NumCPU()), "%d Hz: the CPUs were not sampled at this rate", hz)
		assert.Zero(t, dropped, "%d Hz: samples lost:%s", hz, why)
		assert.EqualValues(t, account["hits"], account["emitted"]+account["filtered_idle"], "%d Hz", hz)
	}
	return figures
}
