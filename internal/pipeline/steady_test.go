//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// The first batch makes room for the samples of the second, whose stretches are looked at.
const (
	steadyFirst     = 5 * time.Second
	steadyWarmUp    = time.Second
	steadySeconds   = 3
	steadyStretches = 60
)

// TestSteadyAllocations: on its way from the ring buffer into the batch, a
// sample that looks like an earlier one costs no allocation. Stretches in which
// something new appears (a stack, a thread, a label set) do not count: that
// allocates by right. Only samples of the test's writers are looked at.
//
// The runtime counts the allocations of the whole process, and its own work and
// the test's may add some to a stretch; one that came with each sample, or with
// each tenth, would leave no stretch without.
func TestSteadyAllocations(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	writers := map[uint32]bool{}
	for range runtime.NumCPU() {
		w := testutil.Start(t, "writer-v1-lib", "spin", "--labels", "10", "--threads", "1", "--seconds", "600")
		writers[uint32(w.PID)] = true
	}
	fmt.Printf("%8s %10s %12s %20s %20s\n", "Hz", "samples", "allocations", "steady stretches", "of these without any")
	rates := []int{20, 97, 997, 10_000}
	if testing.Short() {
		rates = []int{997}
	}
	for _, hz := range rates {
		d := startDrain(t, hz, writers)
		d.read(t, hz*int(steadyFirst.Seconds()))
		d.stop() // what happens to processes allocates, too
		for _, p := range d.batch.users {
			p.builder.Reset()
		}
		d.read(t, hz*int(steadyWarmUp.Seconds()))
		samples, allocations, stretches, free := 0, uint64(0), 0, 0
		for range steadyStretches {
			n := hz * steadySeconds / steadyStretches
			seen := d.seen()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d.read(t, n)
			runtime.ReadMemStats(&after)
			if d.seen() == seen {
				stretches++
				samples += n
				allocations += after.Mallocs - before.Mallocs
				if after.Mallocs == before.Mallocs {
					free++
				}
			}
		}
		fmt.Printf("%8d %10d %12d %14d of %d %20d\n", hz, samples, allocations, stretches, steadyStretches, free)
		require.NotZero(t, samples, "%d Hz: no stretch was steady", hz)
		require.Greater(t, 2*free, stretches, "%d Hz: most steady stretches allocate", hz)
	}
}

// A steadyDrain is the drain of a pipeline without the rest: nobody reads
// samples but the test, and nobody builds profiles.
type steadyDrain struct {
	*drain
	sampler *bpf.Sampler
	writers map[uint32]bool
	rec     bpf.Record
	stop    func() // ends what follows processes
}

func startDrain(t *testing.T, hz int, writers map[uint32]bool) *steadyDrain {
	o := Defaults()
	o.Next.Profiles = consumertest.NewNop()
	o.SamplesPerSecond = hz
	p, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	require.NoError(t, p.follower.scan())
	require.NoError(t, p.sampler.Start())
	t.Cleanup(func() { require.NoError(t, p.sampler.Stop()) })
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { p.table.Run(ctx) })
	drain := p.drains[0]
	drain.batch = p.output.newBatch(drain.stream)
	return &steadyDrain{drain: drain, sampler: p.sampler, writers: writers, stop: func() { cancel(); running.Wait() }}
}

// read does what run does for n samples of the writers, each of which must come within a minute.
func (d *steadyDrain) read(t *testing.T, n int) {
	last := time.Now()
	for end := time.Now().Add(time.Minute); n > 0 && time.Now().Before(end); {
		err := d.sampler.Read(&d.rec)
		if errors.Is(err, bpf.ErrIdle) {
			if time.Since(last) > time.Second {
				last = time.Now()
				_, err := d.sampler.UpdateCPUs() // another test may take some away for a while; this allocates
				require.NoError(t, err)
			}
			continue
		}
		if err != nil {
			require.NoError(t, err)
		}
		if d.writers[d.rec.PID] {
			d.add(&d.rec, timeOff{})
			n--
			last = time.Now()
			end = last.Add(time.Minute)
		}
	}
	if n > 0 {
		t.Fatal("the samples did not come")
	}
}

// seen is how much has been remembered so far.
func (d *steadyDrain) seen() [3]int {
	var seen [3]int
	for _, p := range d.batch.users {
		for range p.builder.Totals() {
			seen[0]++
		}
		seen[2] += len(p.processes)
	}
	seen[1] = d.labels.Bytes()
	return seen
}
