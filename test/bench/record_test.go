//go:build linux && (amd64 || arm64)

package bench

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/labelstates"
	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

var recordRounds = testutil.Size(10, 1, 1)

// Goals are BPF time in ns, with what is read in the caches: of a sample of a process
// without labels, and what labels add to it.
const (
	goalRecordSample    = 400
	goalRecordLabel     = 150
	goalRecordTenLabels = 500
)

// recordWarmHz keeps what a sample reads in the caches.
const recordWarmHz = 5000

const (
	recordRingBytes  = 32 << 20 // half of it holds a round, so that nobody has to read meanwhile
	recordValueBytes = 16
)

// A benchRate is measured for so long in each round, on few CPUs.
type benchRate struct {
	hz   int
	time time.Duration
}

// duration is how long it is measured here: the ring buffer holds a round of all CPUs.
func (r benchRate) duration() time.Duration {
	const few = 4
	return r.time * few / time.Duration(max(few, runtime.NumCPU()))
}

var recordRates = testutil.Size([]benchRate{{97, 3 * time.Second}, {997, 2 * time.Second}, {recordWarmHz, time.Second}},
	[]benchRate{{recordWarmHz, time.Second}}, []benchRate{{recordWarmHz, time.Second}})

// recordNoABI is the variant of the writers that publishes nothing.
const recordNoABI = "spin-plain"

// Cases that others are compared with, and what is measured of each.
const (
	recordLabelsOff = "labels off"
	recordPlain     = "process without labels"
	recordLabel     = "v1, 1 label"
	recordTenLabels = "v1, 10 labels"
	recordFigure    = "BPF ns"
)

// A recordCase is a kind of target. want is the number of its labels.
type recordCase struct {
	name    string
	variant string
	state   string // instead of variant: of testdata/bpf/target.c, with what a runtime has in memory
	args    []string
	off     bool // labels are not read
	abi     record.ABI
	want    int

	load   *load
	source record.LabelSource // of a state
}

// A recordResult is what was sampled of a case in all rounds.
type recordResult struct {
	runs        int
	inTarget    int
	whole       int // stacks of these
	sourceReads uint64
}

func recordCases() []*recordCase {
	spin := func(n int) []string {
		return []string{"--labels", fmt.Sprint(n), "--value-bytes", fmt.Sprint(recordValueBytes)}
	}
	return []*recordCase{
		{name: recordLabelsOff, variant: "writer-v1-exe", args: spin(10), off: true},
		{name: recordPlain, variant: recordNoABI},
		{name: recordLabel, variant: "writer-v1-exe", args: spin(1), abi: record.ABIV1, want: 1},
		{name: recordTenLabels, variant: "writer-v1-exe", args: spin(10), abi: record.ABIV1, want: 10},
		{name: "v1, 10 labels, each string in a page of its own", state: "strings-alone", abi: record.ABIV1, want: 10},
		{name: "thread context, ids only", variant: "writer-ctx-exe", args: spin(0), abi: record.ABIThreadContext},
		{name: "Go, 1 label", state: "go-labels-1", abi: record.ABIGo, want: 1},
		{name: "Go, 10 labels", state: "go-labels-10", abi: record.ABIGo, want: 10},
		{name: "Go before 1.24, 10 labels", state: "go-map-10-in-1", abi: record.ABIGo, want: 10},
		{name: "Node.js, 2 attributes", state: "node-right", abi: record.ABIThreadContextNodeJS, want: 2},
		{name: "thread context, 5 attributes", variant: "writer-ctx-exe", args: spin(5), abi: record.ABIThreadContext, want: 5},
	}
}

// TestBenchRecord measures the BPF time of a sample by kind of target, with the
// kernel's own count of run time. In each round the cases come one after the
// other, so that all of them meet the machine in the same state; while one is
// measured, its targets keep every CPU busy and those of the others are stopped.
//
// Targets and samplers are started anew for each round, so that no run depends on where their
// memory happens to lie; hence Together, though the cases take turns.
func TestBenchRecord(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	require.NoError(t, err)
	defer stats.Close()
	run := paired.Start(t, rawDir, "record")
	program := labelstates.Build(t)

	var warm *paired.Series
	for _, rate := range recordRates {
		results := map[string]*recordResult{}
		var names []string
		for _, c := range recordCases() {
			results[c.name], names = &recordResult{}, append(names, c.name)
		}
		series := run.Together(fmt.Sprintf("%d Hz", rate.hz), recordRounds, names, func(order []string) (figures map[string]paired.Figures) {
			require.True(t, t.Run(fmt.Sprintf("%d Hz", rate.hz), func(t *testing.T) {
				figures = measureRecords(t, program, rate, order, results)
			}))
			return figures
		})
		printRecords(rate.hz, names, results, series)
		for _, c := range recordCases() {
			c.check(t, results[c.name])
		}
		if rate.hz == recordWarmHz {
			warm = series
		}
	}
	run.Judge(
		paired.Claim{What: recordPlain, Unit: "ns", Values: warm.Values(recordPlain, recordFigure), Goal: goalRecordSample},
		paired.Claim{What: recordLabel + " more than " + recordLabelsOff, Unit: "ns",
			Values: warm.Differences(recordLabel, recordLabelsOff, recordFigure), Goal: goalRecordLabel},
		paired.Claim{What: recordTenLabels + " more than " + recordLabelsOff, Unit: "ns",
			Values: warm.Differences(recordTenLabels, recordLabelsOff, recordFigure), Goal: goalRecordTenLabels},
	)
}

// measureRecords starts all targets, measures them in an order, and adds to their results.
func measureRecords(t *testing.T, program string, rate benchRate, order []string, results map[string]*recordResult) map[string]paired.Figures {
	cases, byName := recordCases(), map[string]*recordCase{}
	for _, c := range cases {
		if c.state != "" {
			var offset int64
			c.load, offset = startStates(t, program, c.state, c.abi.String())
			c.source = stateSource(c.state, c.abi, offset)
		} else {
			c.load = startLoad(t, c.variant, c.args...)
		}
		c.load.pause()
		byName[c.name] = c
	}
	on, off := newSampler(t, rate.hz, false), newSampler(t, rate.hz, true)
	tellOfTargets(t, cases, on, off)
	figures := map[string]paired.Figures{}
	for _, name := range order {
		c, s := byName[name], on
		if c.off {
			s = off
		}
		figures[name] = paired.Figures{recordFigure: c.round(t, s, rate.duration(), results[name])}
	}
	return figures
}

func newSampler(t *testing.T, hz int, skipLabels bool) *bpf.Sampler {
	s, err := bpf.New(bpf.Config{SamplesPerSecond: hz, RingBufferBytes: recordRingBytes, UserShare: 0.5, SkipLabels: skipLabels})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// round samples for a while, then reads what was sampled. It returns the ns of BPF time of a sample.
func (c *recordCase) round(t *testing.T, s *bpf.Sampler, d time.Duration, r *recordResult) float64 {
	c.load.resume()
	time.Sleep(100 * time.Millisecond) // until its memory is in the caches
	countersBefore, err := s.Counters()
	require.NoError(t, err)
	runsBefore, timeBefore, err := s.ProgramRuntime()
	require.NoError(t, err)
	require.NoError(t, s.Start())
	time.Sleep(d)
	require.NoError(t, s.Stop())
	c.load.pause()
	runs, total, err := s.ProgramRuntime()
	require.NoError(t, err)
	counters, err := s.Counters()
	require.NoError(t, err)

	runs, total = runs-runsBefore, total-timeBefore
	require.NotZero(t, runs)
	require.Equal(t, counters.Hits-countersBefore.Hits, runs)
	require.Equal(t, countersBefore.DroppedUserShare, counters.DroppedUserShare, "its half must hold a round")
	require.Equal(t, countersBefore.DroppedRingFull, counters.DroppedRingFull, "the ring buffer must hold a round")
	r.runs += int(runs)
	r.sourceReads += counters.SourceReads - countersBefore.SourceReads
	c.read(t, s, r)
	return float64(total.Nanoseconds()) / float64(runs)
}

// read counts what is in the ring buffer and checks the labels.
func (c *recordCase) read(t *testing.T, s *bpf.Sampler, r *recordResult) {
	s.Drain()
	var rec bpf.Record
	for {
		err := s.Read(&rec)
		if errors.Is(err, bpf.ErrDrained) {
			return
		}
		if errors.Is(err, bpf.ErrIdle) {
			continue
		}
		require.NoError(t, err)
		if !c.load.has(rec.PID) {
			continue
		}
		r.inTarget++
		if rec.UserStack == record.OutcomePresent {
			r.whole++
		}
		c.checkLabels(t, &rec, labels.Decode(nil, rec.Labels))
	}
}

func (c *recordCase) checkLabels(t *testing.T, rec *bpf.Record, d *labels.Decoded) {
	if c.abi == record.ABINone {
		require.Empty(t, rec.Labels)
		return
	}
	require.Len(t, d.Reads, 1)
	require.Equal(t, c.abi, d.Reads[0].ABI)
	if rec.TID == rec.PID && c.state == "" { // the main thread only waits
		require.Equal(t, record.OutcomeNone, d.Reads[0].Outcome)
		return
	}
	require.Equal(t, record.OutcomePresent, d.Reads[0].Outcome)
	if c.abi.ThreadContext() {
		// What its attributes are called is not known here.
		require.NotZero(t, d.Link)
		require.EqualValues(t, c.want, d.Counts[labels.AnomalyUnknownKey])
		return
	}
	require.Equal(t, c.want, d.Set.Len())
	if c.state != "" {
		return
	}
	i := 0
	for l := range d.Set.All() {
		require.Equal(t, fmt.Sprintf("label_%02d", i), l.Key)
		require.Equal(t, strings.Repeat(string(rune('a'+i)), recordValueBytes), l.Value)
		i++
	}
}

// check: what is read of a target follows from its kind, exactly.
func (c *recordCase) check(t *testing.T, r *recordResult) {
	require.NotZero(t, r.inTarget, c.name)
	require.Greater(t, r.whole, r.inTarget*9/10, "%s: stacks are walked to their end", c.name)
	if c.abi == record.ABINone {
		require.Zero(t, r.sourceReads, "%s: a target's memory was read for labels", c.name)
		return
	}
	require.EqualValues(t, r.inTarget, r.sourceReads, "%s: one source read for each sample of the target", c.name)
}

func printRecords(hz int, names []string, results map[string]*recordResult, series *paired.Series) {
	fmt.Printf("BPF time of a sample at %d Hz, median of %d rounds\n", hz, recordRounds)
	fmt.Printf("%-30s %8s %15s %26s %9s %11s %13s\n",
		"", "ns", "lowest–highest", "ratio to "+recordLabelsOff, "samples", "in target", "source reads")
	for _, name := range names {
		r, ns := results[name], series.Values(name, recordFigure)
		fmt.Printf("%-30s %8.0f %15s %26s %9d %10.1f%% %13d\n", name, paired.Of(ns).Median, spread(ns, "%.0f"),
			interval(series.Ratios(name, recordLabelsOff, recordFigure)), r.runs, 100*float64(r.inTarget)/float64(r.runs), r.sourceReads)
	}
}
