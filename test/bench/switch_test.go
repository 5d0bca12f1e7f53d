//go:build linux && (amd64 || arm64)

package bench

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var (
	switchTime   = testutil.Size(2*time.Second, time.Second/2, time.Second/2)
	switchRounds = testutil.Size(5, 1, 1)
)

var switchThresholds = []float64{bpf.MinOffCPUThreshold, 0.01, 0.1, 1}

// TestBenchSwitch measures the BPF time of a switch by off_cpu::threshold, while pairs
// of labelled threads on each CPU do nothing but switch. Stacks are walked by
// unwind rows.
func TestBenchSwitch(t *testing.T) {
	testutil.RequireBPF(t)
	printMachine(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	c := &recordCase{variant: "writer-v1-exe"}
	c.load = startCopies(t, filepath.Join(testutil.BuildWriters(t), c.variant), "storm", "--threads", "2", "--seconds", writerSeconds)
	s := newSampler(t, bpf.MinSamplesPerSecond, false)
	tellOfTargets(t, []*recordCase{c}, s)

	figures := map[float64][]float64{} // ns a switch
	recorded := map[float64]uint64{}
	for range switchRounds {
		for _, threshold := range switchThresholds {
			ns, n := benchSwitches(t, s, threshold)
			figures[threshold] = append(figures[threshold], ns)
			recorded[threshold] += n
		}
	}
	fmt.Printf("%10s %14s %12s\n", "threshold", "ns a switch", "recorded")
	for _, threshold := range switchThresholds {
		fmt.Printf("%10v %14.0f %12d\n", threshold, median(figures[threshold]), recorded[threshold])
		require.NotZero(t, median(figures[threshold]))
	}
	require.NotZero(t, recorded[1])
}

func benchSwitches(t *testing.T, s *bpf.Sampler, threshold float64) (ns float64, recorded uint64) {
	o, err := s.OffCPU(bpf.OffCPUConfig{Threshold: threshold, RingBufferBytes: 128 << 20})
	require.NoError(t, err)
	var reading sync.WaitGroup
	reading.Go(func() {
		var sw bpf.Switch
		for {
			if err := o.Read(&sw); errors.Is(err, bpf.ErrClosed) {
				return
			}
		}
	})
	require.NoError(t, o.Start())
	time.Sleep(switchTime)
	require.NoError(t, o.Stop())
	runs, total, err := o.ProgramRuntime()
	require.NoError(t, err)
	counters, err := o.Counters()
	require.NoError(t, err)
	require.NoError(t, o.Close())
	reading.Wait()
	require.NotZero(t, runs)
	return float64(total.Nanoseconds()) / float64(runs), counters.Submitted
}
