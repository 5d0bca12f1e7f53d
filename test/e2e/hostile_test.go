//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	hostileRate = 997
	hostileTime = 5 * time.Minute // at most
	hostileNice = 10
	// goodEnough samples of each well-behaved program.
	goodEnough = 20
	// spinValueBytes is the length of the values of mode spin, asked for.
	spinValueBytes = 12
)

// hostileEnough samples of each program; what it publishes does not change.
var hostileEnough = size(20, 3, 3)

// abiNames are what metrics call the ABIs of the writers.
var abiNames = map[string]string{
	"v0": record.ABIV0.String(), "v1": record.ABIV1.String(), "ctx": record.ABIThreadContext.String(),
}

// A hostileProcess is a program under test and what arrived of it.
type hostileProcess struct {
	name  string
	judge func(*hit) error
	// marked: each sample has a label, a link or a mark, once the program has been found.
	marked bool
	// labelled: at least one sample must have labels.
	labelled bool
	found    bool // by a sample that has any of them
	hits     int  // when all have been found
	stopped  bool
	labels   int // samples with any
	wrong    int
	example  error
}

// TestHostile runs programs that publish what no program should, and executables
// that are damaged or foreign, all at once. The samples of each arrive, with labels
// only where labels can be read, and well-behaved programs among them lose nothing.
func TestHostile(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	byPID := map[int64]*hostileProcess{}
	var stopped []*testutil.Writer
	add := func(name string, w *testutil.Writer, judge func(*hit) error) *hostileProcess {
		w.Signal(syscall.SIGSTOP) // so that the next ones start quickly
		stopped = append(stopped, w)
		p := &hostileProcess{name: name, judge: judge}
		byPID[int64(w.PID)] = p
		return p
	}
	outcomes := map[string]map[record.Outcome]bool{}
	for abi, kinds := range map[string]map[string]expectation{
		"v0": hostileLabels(), "v1": hostileLabels(), "ctx": hostileContexts(),
	} {
		variant := "writer-" + abi + "-exe"
		require.ElementsMatch(t, hostileKinds(t, variant), slices.Collect(maps.Keys(kinds)), "kinds with an expectation")
		outcomes[abi] = map[record.Outcome]bool{}
		for kind, want := range kinds {
			outcomes[abi][want.outcome] = true
			w := testutil.Start(t, variant, "hostile", kind, "--seconds", "600")
			add(abi+" "+kind, w, want.judge).marked = !want.bare()
		}
	}
	for _, b := range brokenELFs() {
		path := b.write(t, "writer-v1-exe")
		w := testutil.StartPath(t, path, "spin", "--labels", "1",
			"--value-bytes", strconv.Itoa(spinValueBytes), "--seconds", "600")
		p := add(b.name, w, b.judge)
		p.labelled, p.marked = b.readable, b.readable
	}
	foreign := testutil.Can(t, testutil.Run32Bit)
	if foreign {
		path := filepath.Join(t.TempDir(), "spin32")
		require.NoError(t, os.WriteFile(path, testutil.Spin32Bit(), 0o700)) //nolint:gosec // a program
		byPID[int64(startSpin(t, path))] = &hostileProcess{name: "32-bit", judge: judgeUnlabelled}
	}
	good := map[int64]*goodWriter{}
	for _, variant := range []string{"writer-v0-dlopen", "writer-v1-lib", "writer-ctx-exe"} {
		w := testutil.Start(t, variant, "fidelity", "--seconds", "600")
		good[int64(w.PID)] = &goodWriter{variant: variant, publishes: map[uint32]bool{}}
	}
	// A hundred programs that spin leave the receiver its share of the CPUs.
	for pid := range byPID {
		require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, int(pid), hostileNice))
	}
	for _, w := range stopped {
		w.Signal(syscall.SIGCONT)
	}

	var once sync.Once
	enough := make(chan struct{})
	settled := false // all programs of which it can be told have been found
	out := &sink{t: t, visit: func(b flatBatch) {
		least := hostileEnough
		for i := range b.hits {
			h := &b.hits[i]
			if p := byPID[h.pid]; p != nil {
				p.add(h, settled)
			} else if w := good[h.pid]; w != nil {
				w.add(h)
			}
		}
		if !settled {
			settled = true
			for _, p := range byPID {
				settled = settled && (p.found || !p.marked)
			}
			return
		}
		for pid, p := range byPID {
			least = min(least, p.hits)
			if p.hits >= hostileEnough && !p.stopped {
				p.stopped = true // the CPUs are for those that lack samples
				_ = unix.Kill(int(pid), unix.SIGSTOP)
			}
		}
		for _, w := range good {
			if w.checked < goodEnough {
				return
			}
		}
		if least == hostileEnough {
			once.Do(func() { close(enough) })
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = hostileRate
		c.ReportInterval = time.Second
		c.MaxMemoryBytes = slowConsumerMemory
	}, slowConsumer, func(o *pipeline.Options) { o.Ring.Bytes, o.Ring.UserShare = 32<<20, 1 }) // all is root's
	select {
	case <-enough:
	case <-time.After(hostileTime):
	}
	reads := r.metric("label_reads", "abi", "outcome")
	stacks := r.metric("user_stacks", "outcome")
	loadErrors := r.metric("process_load_errors", "reason")["file_failed"]
	r.stop()

	checkHostile(t, byPID)
	for _, w := range good {
		w.check(t)
	}
	fmt.Printf("label reads %v\nuser stacks %v\nexecutables that could not be read: %d\n", reads, stacks, loadErrors)
	for abi, wanted := range outcomes {
		for o := range wanted {
			require.NotZero(t, reads[abiNames[abi]+"/"+o.String()])
		}
	}
	if foreign {
		require.NotZero(t, stacks["compat"])
	}
	require.NotZero(t, loadErrors, "the damaged executables")
	account := r.account()
	fmt.Printf("%v\n", account)
	_, received := out.received()
	requireFlushed(t, account, received)
	require.Equal(t, account["hits"], account["emitted"]+account["filtered_idle"], "nothing is dropped")
}

// startSpin runs a program that says nothing until the end of the test.
func startSpin(t *testing.T, path string) (pid int) {
	t.Helper()
	cmd := exec.Command(path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill(), "it spins until then")
		_ = cmd.Wait() // says that it was killed
	})
	return cmd.Process.Pid
}

// hostileKinds asks a writer what it can do.
func hostileKinds(t *testing.T, variant string) []string {
	t.Helper()
	out, err := exec.Command(filepath.Join(testutil.BuildWriters(t), variant), "hostile", "list").Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// add judges a hit, and counts it if the programs have been found.
func (p *hostileProcess) add(h *hit, settled bool) {
	labelled := false
	for key := range h.attrs {
		labelled = labelled || strings.HasPrefix(key, prefix)
	}
	p.labels += count(labelled)
	bare := !labelled && h.link == link{} && h.attrs[truncatedKey] == ""
	err := p.judge(h)
	if err != nil && bare && !p.found {
		return // it has not been found yet
	}
	p.found = p.found || err == nil && !bare
	p.hits += count(settled)
	if err != nil {
		p.wrong++
		p.example = err
	}
}

func judgeUnlabelled(h *hit) error {
	e := nothing(record.OutcomeNone)
	return e.judge(h)
}

// judge takes the label of mode spin where the program has a way to be read.
func (b brokenELF) judge(h *hit) error {
	if !b.readable || !slices.Contains(h.functions, "spin") && h.attrs[prefix+"label_00"] == "" {
		return judgeUnlabelled(h)
	}
	e := present(map[string]string{"label_00": strings.Repeat("a", spinValueBytes)})
	return e.judge(h)
}

func checkHostile(t *testing.T, byPID map[int64]*hostileProcess) {
	t.Helper()
	hits, fewest := 0, hostileEnough
	for _, p := range byPID {
		hits += p.hits
		fewest = min(fewest, p.hits)
		if p.wrong > 0 {
			t.Errorf("%s: %d of %d samples are wrong, for example: %v", p.name, p.wrong, p.hits, p.example)
		}
		if p.hits < hostileEnough {
			t.Errorf("%s: %d samples within %v; found: %v", p.name, p.hits, hostileTime, p.found)
		}
		if p.labelled && p.labels == 0 {
			t.Errorf("%s: no labels, though they can be found", p.name)
		}
	}
	fmt.Printf("%d hostile programs: %d samples, at least %d of each\n", len(byPID), hits, fewest)
}

// A goodWriter runs in mode fidelity beside the hostile ones.
type goodWriter struct {
	variant             string
	publishes           map[uint32]bool // threads; the main thread does not
	checked, unlabelled int
	wrong               error
}

func (w *goodWriter) add(h *hit) {
	n, err := strconv.ParseUint(h.attrs["thread.id"], 10, 32)
	tid := uint32(n)
	check, labelled := h.attrs[prefix+"check"]
	switch {
	case err != nil:
	case labelled:
		_, err = testutil.VerifyFidelity(tid, check, h.attrs[prefix+"pad"])
	case h.link != (link{}):
		_, err = testutil.VerifyFidelityIDs(tid, h.link.traceID, h.link.spanID)
	default:
		if w.publishes[tid] {
			w.unlabelled++
		}
		return
	}
	if err != nil {
		w.wrong = err
		return
	}
	w.checked++
	w.publishes[tid] = true
}

// check allows the few instructions between two sets, in which a thread has none: two samples,
// and a share of many.
func (w *goodWriter) check(t *testing.T) {
	t.Helper()
	fmt.Printf("%-18s %6d samples labelled rightly, %d without labels\n", w.variant, w.checked, w.unlabelled)
	require.NoError(t, w.wrong, w.variant)
	require.GreaterOrEqual(t, w.checked, goodEnough, w.variant)
	require.LessOrEqual(t, float64(w.unlabelled), 2+fidelityMaxUnlabelled(t)*float64(w.checked), w.variant)
}
