//go:build linux && (amd64 || arm64)

package bench

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// A filterCase is a sampler, or an empty program in its place, that samples the same
// busy processes without labels as the others do.
type filterCase struct {
	name     string
	sampler  *bpf.Sampler // nil: the empty program
	filtered bool         // every sample of the target ends by targets

	ns      map[int][]float64 // a run, by rate and round
	ratio   map[int][]float64 // to the first case
	runs    map[int]uint64
	counted uint64 // filtered samples
}

// TestBenchFilter measures the BPF time of a sample of a process that targets exclude,
// against one that is sampled, and against a program that does nothing: what is left of
// that is the kernel's own, the measurement included. The cases take turns.
func TestBenchFilter(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	printMachine(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()

	startLoad(t, "spin-plain")
	for _, rate := range recordRates {
		empty := newEmptyProgram(t, rate.hz)
		cases := []*filterCase{
			{name: "sampled, no targets configured", sampler: newFilterSampler(t, rate.hz, false)},
			{name: "sampled, targets configured", sampler: newFilterSampler(t, rate.hz, true)},
			{name: "filtered by targets", sampler: newFilterSampler(t, rate.hz, true), filtered: true},
			{name: "empty program"},
		}
		require.NoError(t, cases[2].sampler.Scan(func(ev bpf.ProcessEvent) {
			// All, so that it does not matter who else runs meanwhile.
			require.NoError(t, cases[2].sampler.Filter(ev.Process))
		}))
		for _, c := range cases {
			c.ns, c.ratio, c.runs = map[int][]float64{}, map[int][]float64{}, map[int]uint64{}
		}
		for range recordRounds {
			for _, c := range cases {
				ns, runs := c.round(t, empty, rate.time)
				c.ns[rate.hz], c.runs[rate.hz] = append(c.ns[rate.hz], ns), c.runs[rate.hz]+runs
				first := cases[0].ns[rate.hz]
				c.ratio[rate.hz] = append(c.ratio[rate.hz], ns/first[len(first)-1])
			}
		}
		fmt.Printf("%-34s %5s %8s %15s %8s %9s %10s\n", "", "Hz", "ns", "lowest–highest", "ratio", "samples", "filtered")
		for _, c := range cases {
			fmt.Printf("%-34s %5d %8.0f %15s %8.2f %9d %10d\n", c.name, rate.hz, median(c.ns[rate.hz]),
				spread(c.ns[rate.hz], "%.0f"), median(c.ratio[rate.hz]), c.runs[rate.hz], c.counted)
			if c.filtered {
				require.Greater(t, 2*c.counted, c.runs[rate.hz], "most samples are filtered")
			} else {
				require.Zero(t, c.counted)
			}
		}
	}
}

func newFilterSampler(t *testing.T, hz int, selects bool) *bpf.Sampler {
	s, err := bpf.New(bpf.Config{SamplesPerSecond: hz, RingBufferBytes: recordRingBytes, SelectTargets: selects})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// round samples for a while and returns the mean time of a run.
func (c *filterCase) round(t *testing.T, empty *emptyProgram, d time.Duration) (ns float64, runs uint64) {
	t.Helper()
	if c.sampler == nil {
		return empty.round(t, d)
	}
	before, err := c.sampler.Counters()
	require.NoError(t, err)
	runsBefore, timeBefore, err := c.sampler.ProgramRuntime()
	require.NoError(t, err)
	require.NoError(t, c.sampler.Start())
	time.Sleep(d)
	require.NoError(t, c.sampler.Stop())
	runs, total, err := c.sampler.ProgramRuntime()
	require.NoError(t, err)
	after, err := c.sampler.Counters()
	require.NoError(t, err)
	c.counted += after.FilteredTarget - before.FilteredTarget
	emptyRing(t, c.sampler)
	return float64((total - timeBefore).Nanoseconds()) / float64(runs-runsBefore), runs - runsBefore
}

func emptyRing(t *testing.T, s *bpf.Sampler) {
	require.NoError(t, s.Drain())
	var rec bpf.Record
	for {
		err := s.Read(&rec)
		if errors.Is(err, bpf.ErrDrained) {
			return
		}
		if !errors.Is(err, bpf.ErrIdle) {
			require.NoError(t, err)
		}
	}
}

// An emptyProgram runs at each sample and does nothing.
type emptyProgram struct {
	program *ebpf.Program
	hz      int
}

func newEmptyProgram(t *testing.T, hz int) *emptyProgram {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.PerfEvent, License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return &emptyProgram{program, hz}
}

func (e *emptyProgram) round(t *testing.T, d time.Duration) (ns float64, runs uint64) {
	t.Helper()
	before, err := e.program.Stats()
	require.NoError(t, err)
	var attached []link.Link
	for cpu := range runtime.NumCPU() {
		fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: unix.PERF_ATTR_SIZE_VER1,
			Sample: uint64(time.Second) / uint64(e.hz),
		}, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		require.NoError(t, err)
		l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: e.program, Attach: ebpf.AttachPerfEvent})
		require.NoError(t, err)
		attached = append(attached, l)
		defer unix.Close(fd)
	}
	time.Sleep(d)
	for _, l := range attached {
		require.NoError(t, l.Close())
	}
	after, err := e.program.Stats()
	require.NoError(t, err)
	runs = after.RunCount - before.RunCount
	require.NotZero(t, runs)
	return float64((after.Runtime - before.Runtime).Nanoseconds()) / float64(runs), runs
}
