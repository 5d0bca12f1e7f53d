//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	goSamples = size(100_000, 5_000, 500)
	goAtOnce  = size(6, 6, 1) // programs
)

const (
	goroutines = 8       // of each program
	goSets     = 1 << 15 // of each goroutine that a log has: of several seconds
)

var goFunctions = [...]string{"burn0", "burn1", "burn2", "burn3"}

// goMaxUnlabelled bounds the share of samples in labelled code that have no labels.
// What was sampled before a program was found is not counted.
const goMaxUnlabelled = 0.001

// goProgram is a running program of testdata/gowriters.
type goProgram struct {
	*truthWriter

	running *testutil.Writer
	located int // samples with labels, in a function that tells them
}

// startGo starts one at a low priority, which its threads to come inherit.
func startGo(t *testing.T, path string, args ...string) *goProgram {
	name := "go-" + strings.TrimPrefix(filepath.Base(path), "gowriter-")
	log := testutil.NewPublicationLog(t, goroutines, goSets)
	p := &goProgram{truthWriter: &truthWriter{name: name, publishes: inLabelledCode, log: log, owners: map[uint64]*truthOwner{}}}
	p.verify = p.verifyGoroutine
	p.running = testutil.StartPath(t, path, append(args, "-seconds", "86400", "-goroutines", fmt.Sprint(goroutines), "-log", log.Path())...)
	lowerPriority(t, p.running.PID)
	return p
}

// inLabelledCode reports whether a sample was taken where a goroutine has labels, in a
// program that is known.
func inLabelledCode(w *truthWriter, s *truthSample) bool {
	return strings.HasPrefix(s.leaf(), "main.loop") && w.tally.judged > 0
}

// verifyGoroutine checks labels against each other and against the function that ran;
// testdata/gowriters/main.go has the format.
func (p *goProgram) verifyGoroutine(s *truthSample) (id, number uint64, none bool, err error) {
	check, fn, pad := s.values[keyCheck], s.values[keyFn], s.values[keyPad]
	switch {
	case s.linked || s.values[keyAttrCheck] != "":
		return 0, 0, false, errMixed
	case check == "" && fn == "" && pad == "" && len(s.more) == 0:
		return 0, 0, true, nil
	}
	owner, number, err := testutil.ParseFidelityCheck(check)
	if err != nil {
		return 0, 0, false, err
	}
	id = uint64(owner)
	if want := goFunctions[(id+number)%4]; fn != want {
		return 0, 0, false, fmt.Errorf("check %q with fn %q", check, fn)
	}
	if n := int(number % 50); len(pad) != n || strings.Count(pad, "p") != n {
		return 0, 0, false, fmt.Errorf("check %q with pad %q", check, pad)
	}
	for _, value := range s.more {
		if digits, found := strings.CutPrefix(value, "v"); !found || digits != strconv.FormatUint(number, 10) {
			return 0, 0, false, fmt.Errorf("check %q with a label %q", check, value)
		}
	}
	if extra := uint64(len(s.more)); extra != number%3 && extra != number%27 {
		return 0, 0, false, fmt.Errorf("check %q with %d labels more", check, extra)
	}
	if in, located := strings.CutPrefix(s.leaf(), "main.loop"); located {
		p.located += len(s.times)
		if in != strings.TrimPrefix(fn, "burn") {
			return 0, 0, false, fmt.Errorf("fn %q in %s", fn, s.leaf())
		}
	}
	return id, number, false, nil
}

// TestGoLabels: goroutines that change their labels at every turn and hop threads, in
// programs of every linkage and release. Each set has its number and a checksum over
// itself; a sample's set must be one that its goroutine had at that instant, by the log of
// the program, none from before that of an earlier sample of the goroutine, and the one
// that goes with the function that the sample was taken in.
func TestGoLabels(t *testing.T) {
	testutil.RequireBPF(t)
	paths := testutil.BuildGoWriters(t)
	judge := newTruthJudge(t, map[int64]*truthWriter{})
	out := &truthSink{t: t, visit: func(p pprofile.Profiles) { judge.judgeBatch(p) }}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = size(4999, 4999, 499)
		c.ReportInterval = size(time.Second, 250*time.Millisecond, time.Second)
	}, manySets, func(o *pipeline.Options) { o.Ring.Bytes = 32 << 20 })
	start := func(path string, args ...string) *goProgram {
		p := startGo(t, path, args...)
		out.mu.Lock()
		defer out.mu.Unlock()
		judge.writers[int64(p.running.PID)] = p.truthWriter
		return p
	}
	plain := start(paths[0], "-plain", "-threads", "1")
	plain.publishes = func(_ *truthWriter, s *truthSample) bool { return strings.HasPrefix(s.leaf(), "main.loop") }
	var programs []*goProgram
	for i, path := range paths {
		var args []string
		switch i % 3 {
		case 1:
			args = []string{"-many"}
		case 2:
			args = []string{"-depth", "2000"} // more than is walked
		}
		programs = append(programs, start(path, args...))
		if len(programs)%goAtOnce != 0 && i+1 < len(paths) {
			continue
		}
		for _, p := range programs[i/goAtOnce*goAtOnce:] {
			out.await(p.name, goSamples/len(paths)+1, func() int { return p.tally.judged })
			out.await(p.name+", in a function that tells", 1, func() int { return p.located })
			p.running.Stop()
		}
	}
	out.await("a program without labels", 1, func() int { return plain.tally.unlabelled })
	r.stop()

	for _, mistake := range judge.mistakes {
		t.Error(mistake)
	}
	for _, p := range programs {
		n := &p.tally
		fmt.Printf("%-22s %9d samples judged, %6d of them against their function, %6d without labels\n", p.name, n.judged, p.located, n.unlabelled)
		// Of the thousand samples of the quick form a few may be by chance.
		assert.LessOrEqual(t, float64(n.unlabelled), goMaxUnlabelled*float64(n.judged)+size(1., 4., 1.), p.name)
	}
	fmt.Printf("%d samples of a program that sets no labels, %d of them with labels\n", plain.tally.unlabelled, plain.tally.judged)
	require.Zero(t, plain.tally.judged+plain.tally.notJudged)
	plain.tally.unlabelled = 0 // as they should be
	n := judge.total()
	testutil.ReportLabelAssertions(t.Name(), n.judged)
	fmt.Println(judge)
	require.Zero(t, n.wrong)
	require.Zero(t, n.stale)
	require.LessOrEqual(t, float64(n.notJudged), truthMaxNotJudged*float64(n.judged))
	require.GreaterOrEqual(t, n.judged, goSamples)
}

// goNamed is the path of the program of a name.
func goNamed(t *testing.T, name string) string {
	paths := testutil.BuildGoWriters(t)
	i := slices.IndexFunc(paths, func(path string) bool { return filepath.Base(path) == "gowriter-"+name })
	require.GreaterOrEqual(t, i, 0, name)
	return paths[i]
}
