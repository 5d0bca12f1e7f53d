//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	goSamples = size(100_000, 5_000, 500)
	goTime    = 2 * time.Minute // for each program
)

// goMaxUnlabelled bounds the share of samples in labelled code that have no labels.
// What was sampled before a program was found is not counted.
const goMaxUnlabelled = 0.001

// goProgram is a running program of testdata/gowriters.
type goProgram struct {
	name                string
	plain               bool // sets no labels
	checked, unlabelled int
	mismatches          int
	located             int  // of the checked ones, in a function that tells its labels
	found               bool // a sample had labels
}

// check checks a sample of the program and returns how many were checked.
func (p *goProgram) check(t *testing.T, h *hit) int {
	_, labelled := h.attrs[prefix+"check"]
	p.found = p.found || labelled
	switch {
	case !labelled && inLabelledCode(h) && (p.found || p.plain):
		p.unlabelled++
		return 0
	case !labelled:
		return 0
	}
	p.checked++
	if inLabelledCode(h) {
		p.located++
	}
	if err := verifyGoLabels(h); err != nil {
		p.mismatches++
		assert.NoError(t, err, p.name)
	}
	return p.checked
}

// TestGoLabels: goroutines that change their labels at every turn and hop threads, in
// programs of every linkage and release. The function that a sample was taken in
// tells which labels are the right ones, and each set has a checksum over itself.
func TestGoLabels(t *testing.T) {
	testutil.RequireBPF(t)
	paths := testutil.BuildGoWriters(t)
	var mu sync.Mutex // guards what follows
	byPID := map[int64]*goProgram{}
	enough := make(chan *goProgram, len(paths))
	out := &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for i := range b.hits {
			if p := byPID[b.hits[i].pid]; p != nil && p.check(t, &b.hits[i]) == goSamples/len(paths)+1 {
				enough <- p
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		manySets(c)
		c.SamplesPerSecond = size(4999, 4999, 499)
		c.ReportInterval = time.Second
		c.RingBufferBytes = 32 << 20
	})
	var programs []*goProgram
	start := func(path string, args ...string) (*testutil.Writer, *goProgram) {
		p := &goProgram{name: strings.TrimPrefix(filepath.Base(path), "gowriter-")}
		w := testutil.StartPath(t, path, append(args, "-seconds", "600")...)
		mu.Lock()
		defer mu.Unlock()
		byPID[int64(w.PID)] = p
		return w, p
	}
	_, plain := start(paths[0], "-plain", "-threads", "1", "-goroutines", "1")
	mu.Lock()
	plain.plain = true
	mu.Unlock()
	for i, path := range paths {
		var args []string
		switch i % 3 {
		case 1:
			args = []string{"-many"}
		case 2:
			args = []string{"-depth", "2000"} // more than is walked
		}
		w, now := start(path, args...)
		programs = append(programs, now)
		select {
		case p := <-enough:
			require.Same(t, now, p)
		case <-time.After(goTime):
			t.Errorf("%s: not enough samples in %v", now.name, goTime)
		}
		w.Stop()
	}
	r.stop()
	checked, mismatches := 0, plain.mismatches+plain.checked
	for _, p := range programs {
		checked += p.checked
		mismatches += p.mismatches
		fmt.Printf("%-22s %9d samples checked, %6d of them against their function, %6d without labels\n", p.name, p.checked, p.located, p.unlabelled)
		assert.NotZero(t, p.checked, p.name)
		assert.NotZero(t, p.located, p.name)
		assert.LessOrEqual(t, float64(p.unlabelled), goMaxUnlabelled*float64(p.checked)+1, p.name)
	}
	fmt.Printf("%d samples checked, %d mismatches; %d samples of a program that sets no labels\n", checked, mismatches, plain.unlabelled)
	require.Zero(t, mismatches)
	require.NotZero(t, plain.unlabelled)
	require.GreaterOrEqual(t, checked, goSamples)
	testutil.ReportLabelAssertions(t.Name(), checked)
}

// inLabelledCode reports whether a sample was taken where a goroutine has labels.
func inLabelledCode(h *hit) bool {
	return len(h.functions) > 0 && strings.HasPrefix(h.functions[0], "main.loop")
}

// verifyGoLabels checks labels against each other and against the function that ran;
// testdata/gowriters/main.go has the format.
func verifyGoLabels(h *hit) error {
	check, fn := h.attrs[prefix+"check"], h.attrs[prefix+"fn"]
	body := check[:max(0, strings.LastIndex(check, ":"))]
	var id, n int
	if _, err := fmt.Sscanf(body, "%d:%d", &id, &n); err != nil {
		return fmt.Errorf("check %q: %w", check, err)
	}
	hash := fnv.New64a()
	hash.Write([]byte(body))
	if want := fmt.Sprintf("%s:%016x", body, hash.Sum64()); check != want {
		return fmt.Errorf("check %q: want %q", check, want)
	}
	if want := fmt.Sprintf("burn%d", (id+n)%4); fn != want {
		return fmt.Errorf("check %q with fn %q", check, fn)
	}
	if pad := h.attrs[prefix+"pad"]; pad != strings.Repeat("p", n%50) {
		return fmt.Errorf("check %q with pad %q", check, pad)
	}
	extra := 0
	for key, value := range h.attrs {
		if !strings.HasPrefix(key, prefix+"k") {
			continue
		}
		extra++
		if value != fmt.Sprintf("v%d", n) {
			return fmt.Errorf("check %q with %s=%q", check, key, value)
		}
	}
	if extra != n%3 && extra != n%27 {
		return fmt.Errorf("check %q with %d labels more", check, extra)
	}
	if inLabelledCode(h) && strings.TrimPrefix(h.functions[0], "main.loop") != strings.TrimPrefix(fn, "burn") {
		return fmt.Errorf("fn %q in %s", fn, h.functions[0])
	}
	return nil
}
