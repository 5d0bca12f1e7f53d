//go:build linux && (amd64 || arm64)

package e2e

import (
	"debug/elf"
	"fmt"
	"hash/fnv"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var (
	goSamples = pick(100_000, 500)
	goTime    = pick(4*time.Minute, 2*time.Minute)
)

// goMaxUnlabelled bounds the share of samples in labelled code that have no labels.
// What was sampled before a program was found is not counted.
const goMaxUnlabelled = 0.001

// goProgram is a running program of testdata/gowriters.
type goProgram struct {
	name                string
	functions           bool // the samples tell where it was
	checked, unlabelled int
	located             int  // of the checked ones, in a function that tells its labels
	found               bool // a sample had labels
}

// TestGoLabels: goroutines that change their labels at every turn and hop threads, in
// programs of every linkage and release. The function that a sample was taken in
// tells which labels are the right ones, and each set has a checksum over itself.
func TestGoLabels(t *testing.T) {
	testutil.RequireBPF(t)
	programs := map[int64]*goProgram{}
	paths := testutil.BuildGoWriters(t)
	for i, path := range paths {
		args := []string{"-seconds", fmt.Sprint(int(goTime.Seconds()) + 30), "-threads", "2"}
		switch i % 3 {
		case 1:
			args = append(args, "-many")
		case 2:
			args = append(args, "-depth", "2000") // more than is walked
		}
		w := testutil.StartPath(t, path, args...)
		programs[int64(w.PID)] = &goProgram{name: strings.TrimPrefix(filepath.Base(path), "gowriter-"), functions: hasSymbols(t, path)}
	}
	plain := testutil.StartPath(t, paths[0], "-plain", "-seconds", "600")
	checked, mismatches, unlabelledPlain := 0, 0, 0
	done := make(chan struct{})
	out := &sink{t: t, visit: func(b flatBatch) {
		for i := range b.hits {
			h := &b.hits[i]
			if h.pid == int64(plain.PID) {
				unlabelledPlain++
				if h.attrs[prefix+"check"] != "" {
					mismatches++
				}
				continue
			}
			p := programs[h.pid]
			if p == nil {
				continue
			}
			_, labelled := h.attrs[prefix+"check"]
			p.found = p.found || labelled
			switch {
			case !labelled && p.found && inLabelledCode(h):
				p.unlabelled++
			case !labelled:
			default:
				p.checked++
				if inLabelledCode(h) {
					p.located++
				}
				if err := verifyGoLabels(h, p.functions); err != nil {
					mismatches++
					assert.NoError(t, err, p.name)
				}
				if checked++; checked == goSamples {
					close(done)
				}
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = pick(10_000, 499)
		c.ReportInterval = time.Second
		c.RingBufferBytes = 32 << 20
	})
	select {
	case <-done:
	case <-time.After(goTime):
	}
	r.stop()
	for _, p := range slices.SortedFunc(maps.Values(programs), func(a, b *goProgram) int { return strings.Compare(a.name, b.name) }) {
		fmt.Printf("%-22s %9d samples checked, %6d of them against their function, %6d without labels\n", p.name, p.checked, p.located, p.unlabelled)
		assert.NotZero(t, p.checked, p.name)
		assert.Equal(t, p.functions, p.located > 0, p.name)
		assert.LessOrEqual(t, float64(p.unlabelled), goMaxUnlabelled*float64(p.checked)+1, p.name)
	}
	fmt.Printf("%d samples checked, %d mismatches; %d samples of a program that sets no labels\n", checked, mismatches, unlabelledPlain)
	require.Zero(t, mismatches)
	require.NotZero(t, unlabelledPlain)
	require.GreaterOrEqual(t, checked, goSamples)
	testutil.ReportLabelAssertions(t.Name(), checked)
}

// hasSymbols reports whether a program's functions have names.
func hasSymbols(t *testing.T, path string) bool {
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	return f.Section(".symtab") != nil
}

// inLabelledCode reports whether a sample was taken where a goroutine has labels.
func inLabelledCode(h *hit) bool {
	return len(h.functions) > 0 && strings.HasPrefix(h.functions[0], "main.loop")
}

// verifyGoLabels checks labels against each other and against the function that ran;
// testdata/gowriters/main.go has the format.
func verifyGoLabels(h *hit, functions bool) error {
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
	if functions && inLabelledCode(h) && strings.TrimPrefix(h.functions[0], "main.loop") != strings.TrimPrefix(fn, "burn") {
		return fmt.Errorf("fn %q in %s", fn, h.functions[0])
	}
	return nil
}
