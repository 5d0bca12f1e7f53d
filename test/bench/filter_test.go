//go:build linux && (amd64 || arm64)

package bench

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

var filterRates = testutil.Size([]benchRate{{97, 3 * time.Second}, {997, 2 * time.Second}},
	[]benchRate{{997, time.Second}}, []benchRate{{997, time.Second}})

const filterFigure = "BPF ns"

// A filterCase is a program at the samples of one busy process without labels.
type filterCase struct {
	name     string
	sampler  *bpf.Sampler // nil: an empty program
	program  *ebpf.Program
	filtered bool // targets exclude the process

	runs    uint64
	counted uint64 // filtered samples
}

// TestBenchFilter measures the BPF time of a sample of a process that targets exclude,
// against one that is sampled, and against a program that does nothing: what is left of
// that is the kernel's own, the measurement included. Only the threads of one process are
// sampled, so that it does not matter what else runs. The cases take turns.
func TestBenchFilter(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	run := paired.Start(t, rawDir, "filter")
	l := startLoad(t, "spin-plain")
	seen := map[ebpf.ProgramID]bool{}
	cases := []*filterCase{
		newFilterCase(t, seen, "sampled, no targets configured", false),
		newFilterCase(t, seen, "sampled, targets configured", true),
		newFilterCase(t, seen, "filtered by targets", true),
		{name: "empty program", program: newEmptyProgram(t)},
	}
	excluded := cases[2]
	excluded.filtered = true
	require.NoError(t, excluded.sampler.Scan(func(ev record.Event) {
		if l.has(uint32(ev.PID)) {
			require.NoError(t, excluded.sampler.Filter(ev.Process))
		}
	}))
	byName := map[string]*filterCase{}
	var names []string
	for _, c := range cases {
		byName[c.name], names = c, append(names, c.name)
	}
	for _, rate := range filterRates {
		for _, c := range cases {
			c.runs, c.counted = 0, 0
		}
		series := run.Rounds(fmt.Sprintf("%d Hz", rate.hz), recordRounds, names, func(subject string) paired.Figures {
			return paired.Figures{filterFigure: byName[subject].round(t, l, rate.hz, rate.duration())}
		})
		fmt.Printf("%-34s %5s %8s %15s %26s %9s %10s\n", "", "Hz", "ns", "lowest–highest", "ratio to the first", "samples", "filtered")
		for _, c := range cases {
			ns := series.Values(c.name, filterFigure)
			fmt.Printf("%-34s %5d %8.0f %15s %26s %9d %10d\n", c.name, rate.hz, paired.Of(ns).Median,
				spread(ns, "%.0f"), interval(series.Ratios(c.name, cases[0].name, filterFigure)), c.runs, c.counted)
			if c.filtered {
				require.Equal(t, c.runs, c.counted)
			} else {
				require.Zero(t, c.counted)
			}
		}
	}
}

// newFilterCase loads a sampler, of which only the program is used.
func newFilterCase(t *testing.T, seen map[ebpf.ProgramID]bool, name string, selects bool) *filterCase {
	t.Helper()
	s, err := bpf.New(bpf.Config{SamplesPerSecond: bpf.MaxSamplesPerSecond, RingBufferBytes: recordRingBytes, SelectTargets: selects})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	found := openPrograms(t, os.Getpid(), ebpf.PerfEvent)
	t.Cleanup(found.close)
	c := &filterCase{name: name, sampler: s}
	for _, p := range found.program {
		info, err := p.Info()
		require.NoError(t, err)
		id, ok := info.ID()
		require.True(t, ok)
		if !seen[id] {
			require.Nil(t, c.program)
			seen[id], c.program = true, p
		}
	}
	require.NotNil(t, c.program)
	return c
}

// newEmptyProgram returns a program that does nothing.
func newEmptyProgram(t *testing.T) *ebpf.Program {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.PerfEvent, License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	require.NoError(t, err)
	t.Cleanup(func() { program.Close() })
	return program
}

// round samples the threads of the load for a while. It returns the ns of BPF time of a sample.
func (c *filterCase) round(t *testing.T, l *load, hz int, d time.Duration) float64 {
	t.Helper()
	before, err := c.program.Stats()
	require.NoError(t, err)
	filtered := c.filteredSamples(t)
	var attached []link.Link
	for _, pid := range l.pids {
		eachThread(t, pid, func(tid int) {
			fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
				Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: unix.PERF_ATTR_SIZE_VER1,
				Sample: uint64(time.Second) / uint64(hz),
			}, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
			require.NoError(t, err)
			defer unix.Close(fd)
			event, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: c.program, Attach: ebpf.AttachPerfEvent})
			require.NoError(t, err)
			attached = append(attached, event)
		})
	}
	time.Sleep(d)
	for _, event := range attached {
		require.NoError(t, event.Close())
	}
	after, err := c.program.Stats()
	require.NoError(t, err)
	runs := after.RunCount - before.RunCount
	require.NotZero(t, runs)
	c.runs += runs
	c.counted += c.filteredSamples(t) - filtered
	if c.sampler != nil {
		emptyRing(t, c.sampler)
	}
	return float64((after.Runtime - before.Runtime).Nanoseconds()) / float64(runs)
}

func (c *filterCase) filteredSamples(t *testing.T) uint64 {
	if c.sampler == nil {
		return 0
	}
	counters, err := c.sampler.Counters()
	require.NoError(t, err)
	return counters.FilteredTarget
}

func emptyRing(t *testing.T, s *bpf.Sampler) {
	s.Drain()
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
