//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// enoughOfRules samples of each program show what became of its labels.
const enoughOfRules = 100

// A labelCase keeps the hits of some writers.
type labelCase struct {
	mu   sync.Mutex
	hits map[int64][]hit
	// most different values of a label in a batch, by PID.
	key  string
	most map[int64]int
	// What is set that no key says.
	derived func(*pipeline.Options)
}

func (c *labelCase) visit(b flatBatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := map[int64]map[string]bool{}
	for _, h := range b.hits {
		c.hits[h.pid] = append(c.hits[h.pid], h)
		if value, ok := h.attrs[prefix+c.key]; ok {
			if values[h.pid] == nil {
				values[h.pid] = map[string]bool{}
			}
			values[h.pid][value] = true
		}
	}
	for pid, seen := range values {
		c.most[pid] = max(c.most[pid], len(seen))
	}
}

func (c *labelCase) of(pid int) []hit {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hits[int64(pid)]
}

// samples runs a receiver until each writer has enough samples, and those that seen wants, halts
// the writers, waits until settled, and stops it.
func (c *labelCase) samples(
	t *testing.T, writers []*testutil.Writer, change func(*customlabelsreceiver.Config), seen func() bool, settled func(*running) bool,
) {
	t.Helper()
	r := startReceiver(t, &sink{t: t, visit: c.visit}, func(cfg *customlabelsreceiver.Config) {
		cfg.SamplesPerSecond = 997
		cfg.ReportInterval = 500 * time.Millisecond
		for _, w := range writers {
			cfg.Targets.Include = append(cfg.Targets.Include, customlabelsreceiver.TargetSelector{PID: w.PID})
		}
		change(cfg)
	}, c.derived)
	require.Eventually(t, func() bool {
		for _, w := range writers {
			if len(c.of(w.PID)) < enoughOfRules {
				return false
			}
		}
		return seen()
	}, 3*time.Minute, 50*time.Millisecond, "they are not sampled")
	for _, w := range writers {
		require.NoError(t, syscall.Kill(w.PID, syscall.SIGSTOP))
	}
	require.Eventually(t, func() bool { return settled(r) }, 2*time.Minute, 100*time.Millisecond)
	r.stop()
}

// TestRules: each action on the labels of real programs; each rule's matches are what
// was seen, to the last label.
func TestRules(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.BuildWriters(t)
	spin := func(variant string) *testutil.Writer {
		return testutil.Start(t, variant, "spin", "--seconds", "86400", "--labels", "10", "--value-bytes", "20")
	}
	exe, lib, context := spin("writer-v1-exe"), spin("writer-v0-lib"), spin("writer-ctx-exe")
	many := testutil.Start(t, "writer-v1-dlopen", "fidelity", "--seconds", "86400")
	c := &labelCase{hits: map[int64][]hit{}, most: map[int64]int{}, key: "check"}

	// labelled is how many samples with labels there were.
	labelled := func(writers ...*testutil.Writer) (n int64) {
		for _, w := range writers {
			for _, h := range c.of(w.PID) {
				if h.attrs[prefix+"check"] != "" || h.attrs[prefix+"label_03"] != "" || h.attrs["label_03"] != "" || h.attrs["custom_labels.truncated"] != "" {
					n++
				}
			}
		}
		return n
	}
	want := func() map[string]int64 {
		return map[string]int64{
			"drop/drop": labelled(exe, lib, context), "rename/rename": labelled(exe, lib, context), "3/rename": labelled(exe, lib, context),
			"3rd/hash": labelled(exe, lib, context), "cut/cap_value_bytes": labelled(exe, lib, context),
			"executable/drop": labelled(lib), "keep/keep": labelled(exe, lib, context), "never/drop": 0,
			"source/drop": labelled(context), "few/cap_distinct_values": labelled(many),
		}
	}
	// capped is how many samples kept a value of the label with too many, and how many lost it.
	capped := func() (kept, capped int64) {
		for _, h := range c.of(many.PID) {
			switch {
			case h.attrs[prefix+"check"] != "":
				kept++
			case h.attrs["custom_labels.truncated"] != "":
				capped++
			}
		}
		return kept, capped
	}
	// Samples go on while counters are read: these are compared at an instant at which they agree.
	var matches map[string]int64
	var kept, lost int64
	c.samples(t, []*testutil.Writer{exe, lib, context, many}, func(cfg *customlabelsreceiver.Config) {
		cfg.Labels.HashSalt = "pepper"
		cfg.Labels.Rules = []customlabelsreceiver.LabelRule{
			{Name: "drop", Key: "label_00", Action: "drop"},
			{Name: "rename", Key: "label_01", Action: "rename", To: "new"},
			{Name: "executable", Key: "*_06", Executable: "**/writer-v0-lib", Action: "drop"},
			{Key: "label_02", Action: "rename", To: "label_03"}, // which stays
			{Name: "3rd", Key: "label_04", Action: "hash"},
			{Name: "cut", Key: "label_05", Action: "cap_value_bytes", Limit: 4},
			{Name: "keep", Key: "label_?7", UID: []int64{0, 1}, Action: "keep"},
			{Name: "never", Key: "label_07", Action: "drop"},
			{Name: "source", Key: "label_08", Source: "thread_context", Action: "drop"},
			{Name: "few", Key: "check", Action: "cap_distinct_values", Limit: 3},
		}
	}, func() bool {
		for name, n := range want() {
			if n == 0 && name != "never/drop" {
				return false
			}
		}
		kept, lost = capped()
		return kept > 0 && lost > 0
	}, func(r *running) bool {
		anomalies, wanted := r.metric("label_anomalies", "kind"), want()
		matches = r.metric("rule_matches", "rule", "action")
		kept, lost = capped()
		return maps.Equal(wanted, matches) && anomalies["capped_value"] == lost &&
			anomalies["rename_conflict"] == wanted["drop/drop"]
	})
	for _, w := range []*testutil.Writer{exe, lib, context} {
		key := func(i int) string {
			if w == context {
				return fmt.Sprintf("label_%02d", i)
			}
			return fmt.Sprintf("%slabel_%02d", prefix, i)
		}
		renamed := strings.Replace(key(0), "label_00", "new", 1)
		value := func(i int) string { return strings.Repeat(string(rune('a'+i)), 20) }
		hashes := map[string]bool{}
		for _, h := range c.of(w.PID) {
			if h.attrs["custom_labels.truncated"] == "" {
				require.Empty(t, h.attrs[key(9)]) // from before its variable was found
				continue
			}
			expected := map[string]string{renamed: value(1), key(3): value(3), key(5): "ffff", key(6): value(6), key(7): value(7), key(8): value(8), key(9): value(9)}
			if w == lib {
				delete(expected, key(6))
			}
			if w == context {
				delete(expected, key(8))
			}
			for i := range 10 {
				expected[key(i)] += "" // none of the others
			}
			hashes[h.attrs[key(4)]] = true
			delete(expected, key(4))
			for name, text := range expected {
				require.Equal(t, text, h.attrs[name], "%s %v", name, h.attrs)
			}
		}
		require.Len(t, hashes, 1)
		require.NotContains(t, hashes, value(4))
	}
	for _, h := range c.of(many.PID) {
		if h.attrs[prefix+"check"] != "" {
			require.Empty(t, h.attrs["custom_labels.truncated"])
		}
	}
	fmt.Printf("rule matches %v\nof a label that changes 10,000 times a second, %d samples have a value, %d are past the cap of 3, at most %d different in a batch\n",
		matches, kept, lost, c.most[int64(many.PID)])
	require.LessOrEqual(t, c.most[int64(many.PID)], 3)
}

// TestBudgets: a user who is past his budget of label sets loses his labels and links, by
// count; another one beside him loses nothing.
func TestBudgets(t *testing.T) {
	testutil.RequireBPF(t)
	dir := testutil.BuildWriters(t)
	const uid = 54322
	flood := runAs(t, filepath.Join(dir, "writer-ctx-exe"), uid, "fidelity", "--seconds", "86400")
	other := testutil.Start(t, "writer-v1-lib", "spin", "--seconds", "86400", "--labels", "10")
	c := &labelCase{hits: map[int64][]hit{}, most: map[int64]int{}, key: "check"}
	c.derived = func(o *pipeline.Options) { o.Labels.Budgets.Sets = 20 }
	overflow := func() (n int64) {
		for _, h := range c.of(flood.PID) {
			if h.attrs["custom_labels.overflow"] != "" {
				n++
			}
		}
		return n
	}
	var counted map[string]int64
	c.samples(t, []*testutil.Writer{flood, other}, func(*customlabelsreceiver.Config) {}, func() bool { return overflow() > 0 }, func(r *running) bool {
		counted = r.metric("overflow_samples", "process.real_user.id", "budget")
		return counted[fmt.Sprintf("%d/sets", uid)] == overflow()
	})
	require.Len(t, counted, 1, "%v", counted)
	linked := 0
	for _, h := range c.of(flood.PID) {
		if h.attrs["custom_labels.overflow"] == "" {
			if h.link != (link{}) {
				linked++
			}
			continue
		}
		require.Zero(t, h.link)
		require.Empty(t, h.attrs["check"]+h.attrs["pad"]+h.attrs["trace_id"])
		require.NotEmpty(t, h.functions)
	}
	complete := 0
	for _, h := range c.of(other.PID) {
		require.Empty(t, h.attrs["custom_labels.overflow"])
		if h.attrs[prefix+"label_00"] == "" {
			continue // from before its variable was found
		}
		complete++
		for i := range 10 {
			require.Len(t, h.attrs[fmt.Sprintf("%slabel_%02d", prefix, i)], 16)
		}
	}
	fmt.Printf("20 label sets in 500 ms: of the user who has more, %d samples with labels, %d without; of the other %d with all\n",
		linked, overflow(), complete)
	require.NotZero(t, linked)
	require.NotZero(t, complete)
}
