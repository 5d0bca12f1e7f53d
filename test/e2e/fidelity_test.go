//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	fidelityRate    = size(10_000, 10_000, 499) // natively the highest there is
	fidelitySamples = truthSamples(size(1_000_000, 10_000, 1000))
	fidelityThreads = size(2, 2, 1) // of each writer
	// At the highest rate there is, so many receivers at once: each samples at instants of its own.
	fidelityReceivers = size(4, 1, 1)
	fidelitySets      = size(1<<17, 1<<17, 1<<15) // of each thread that its log has: natively of 14 s or more
)

// fidelityFalseAlarms is the chance that a run fails in which the share of samples without labels
// is just at its bound, over all writers.
const fidelityFalseAlarms = 1e-6

// fidelityMaxUnlabelled bounds the share of samples without labels. A writer replaces one
// set by the next with one store, or (v0, a thread context in its place) with some
// instructions in which it has none. An emulator takes interrupts between blocks of
// instructions, so that some instants are seen more often than others.
func fidelityMaxUnlabelled(t *testing.T) float64 {
	return testutil.Threshold(t, "share without labels", 0.001, 0.01)
}

// fidelityWriters are writers in mode fidelity: each label ABI in each place where its
// variable can be, and options.
func fidelityWriters() []string {
	if testutil.Emulated() { // all there is room and time for
		return []string{"v0-exe", "v1-lib", "v1-dlopengd", "ctx-dlopen"}
	}
	return []string{
		"v0-exe", "v0-lib", "v0-dlopen", "v1-exe", "v1-lib", "v1-dlopen", "v1-dlopengd", "v1-dlopendesc",
		"ctx-exe", "ctx-lib", "ctx-dlopen", "ctx-dlopengd", "ctx-exe --in-place", "ctx-dlopen --in-place",
	}
}

// startFidelity starts a writer, at a low priority: so many take the CPU from the
// receiver, which here is no test of it.
func startFidelity(t *testing.T, kind string) (pid int64, w *truthWriter) {
	program, options, _ := strings.Cut(kind, " ")
	log := testutil.NewPublicationLog(t, fidelityThreads, fidelitySets)
	args := append([]string{"fidelity", "--threads", fmt.Sprint(fidelityThreads), "--seconds", "86400", "--log", log.Path()}, strings.Fields(options)...)
	running := testutil.Start(t, "writer-"+program, args...)
	lowerPriority(t, running.PID)
	w = &truthWriter{name: kind, verify: verifyLabels, publishes: (*truthWriter).knowsThread, log: log, owners: map[uint64]*truthOwner{}}
	if strings.HasPrefix(kind, "ctx") {
		w.verify = verifyThreadContext
	}
	return int64(running.PID), w
}

// startPlain starts a program without labels: nothing of another's may be seen there.
func startPlain(t *testing.T) *testutil.Writer {
	plain := testutil.Start(t, "spin-plain", "spin", "--seconds", "86400")
	lowerPriority(t, plain.PID)
	return plain
}

// TestFidelity: threads, and goroutines, that swap label sets thousands of times a second,
// each set with its number and a checksum over itself, the number and the thread; and a log
// of when each set was current. Each sample must have a whole set of its thread, which was
// current at its instant, within the error of the clocks; and no set from before that of
// an earlier sample of the thread. Of goroutines it must be one that the goroutine that it
// names had at that instant. Several receivers sample them at the same time, in full; each is
// held to it by itself.
func TestFidelity(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	writers := map[int64]*truthWriter{}
	for _, kind := range fidelityWriters() {
		pid, w := startFidelity(t, kind)
		writers[pid] = w
	}
	if !testutil.Emulated() { // there TestGoLabels runs alone
		for _, name := range []string{"static", "cgo"} {
			p := startGo(t, goNamed(t, name))
			writers[int64(p.running.PID)] = p.truthWriter
		}
	}
	judges := truthJudges{newTruthJudge(t, writers)}
	for len(judges) < fidelityReceivers {
		judges = append(judges, newTruthJudge(t, afresh(writers)))
	}
	plain := startPlain(t)
	var mu sync.Mutex
	var receivers []*running
	for _, judge := range judges {
		out := &truthSink{t: t, visit: func(p pprofile.Profiles) {
			mu.Lock()
			defer mu.Unlock()
			judge.judgeBatch(p)
		}}
		receivers = append(receivers, startReceiver(t, out, func(c *customlabelsreceiver.Config) { fidelityConfig(c, plain, writers) },
			manySets, func(o *pipeline.Options) { o.Ring.Bytes = 32 << 20 }))
	}
	said := time.Now()
	awaitCount(t, &mu, "samples judged", fidelitySamples, func() int {
		if time.Since(said) > truthProgress {
			said = time.Now()
			fmt.Println(judges)
		}
		return judges.total().judged
	})
	for i, judge := range judges {
		for _, w := range judge.writers {
			what := fmt.Sprintf("samples of %s by receiver %d", w.name, i)
			awaitCount(t, &mu, what, fidelitySamples/len(writers)/len(judges)/truthMinShare, func() int { return w.tally.judged })
		}
		awaitCount(t, &mu, "samples of a program without labels", 1, func() int { return judge.others })
	}
	for _, r := range receivers {
		r.stop()
	}

	for _, judge := range judges {
		for _, mistake := range judge.mistakes {
			t.Error(mistake)
		}
	}
	for pid, w := range writers {
		n := judges.of(pid)
		fmt.Printf("%-22s %9d samples judged, %6d without labels\n", w.name, n.judged, n.unlabelled)
		// Of a few hundred samples several may be, by chance.
		chance := testutil.PoissonTail(n.unlabelled, fidelityMaxUnlabelled(t)*float64(n.judged))
		assert.Greater(t, chance, testutil.Bonferroni(fidelityFalseAlarms, len(writers)), "%s: %d of %d without labels", w.name, n.unlabelled, n.judged)
	}
	n := judges.total()
	testutil.ReportLabelAssertions(t.Name(), n.judged)
	fmt.Println(judges)
	require.Zero(t, n.wrong)
	require.Zero(t, n.stale)
	require.LessOrEqual(t, float64(n.notJudged), truthMaxNotJudged*float64(n.judged))
	require.GreaterOrEqual(t, n.judged, fidelitySamples)
}

// fidelityConfig is that of a receiver of writers, and of a program without labels. What
// else runs on a machine would take most of what the receiver can do at this rate.
func fidelityConfig(c *customlabelsreceiver.Config, plain *testutil.Writer, writers map[int64]*truthWriter) {
	c.Targets.Include = []customlabelsreceiver.TargetSelector{{PID: plain.PID}}
	for pid := range writers {
		c.Targets.Include = append(c.Targets.Include, customlabelsreceiver.TargetSelector{PID: int(pid)})
	}
	c.SamplesPerSecond = fidelityRate
	// Nearly each sample has a label set of its own, and all writers are one user's. A busy machine
	// hands a batch over late.
	c.MaxUserLabelSets = 131072
	c.ReportInterval = size(time.Second, 250*time.Millisecond, 500*time.Millisecond)
	c.Symbolize = customlabelsreceiver.SymbolizeNone
}
