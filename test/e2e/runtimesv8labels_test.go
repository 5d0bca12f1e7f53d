//go:build linux && amd64

package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

var v8LabelSamples = size(30_000, 2_000, 300) // of all versions

// v8MinLabelled is the least share of samples in a labelled function that have its label: the
// garbage collector makes for some without.
const v8MinLabelled = 0.9

// v8Labelled are the functions of test/realwriters/node/functions.js that a label names.
var v8Labelled = []string{"alpha", "beta", "gamma", "delta"}

// v8LabelSink compares the label of each sample with its stack.
type v8LabelSink struct {
	mu                                   sync.Mutex
	pid                                  int64
	agree, disagree, unlabelled, outside int
	odd                                  []string
}

func (s *v8LabelSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *v8LabelSink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	dict := p.Dictionary()
	text := func(i int32) string { return dict.StringTable().At(int(i)) }
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rp := range p.ResourceProfiles().All() {
		if pid, _ := rp.Resource().Attributes().Get("process.pid"); pid.Int() != s.pid {
			continue
		}
		for _, sample := range rp.ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			label, n := "", sample.TimestampsUnixNano().Len()
			for _, i := range sample.AttributeIndices().All() {
				if a := dict.AttributeTable().At(int(i)); text(a.KeyStrindex()) == "function" {
					label = a.Value().Str()
				}
			}
			frames := lineFrames(dict, sample.StackIndex())
			i := slices.IndexFunc(frames, func(f pythonFrame) bool {
				return f.kind == frameV8 && slices.Contains(v8Labelled, f.name) && filepath.Base(f.file) == "functions.js"
			})
			switch {
			case i < 0 && label != "":
				s.outside += n // what begins and ends the context
			case i < 0:
			case label == "":
				s.unlabelled += n
			case label == frames[i].name:
				s.agree += n
			default:
				s.disagree += n
				s.odd = append(s.odd, label+" in "+chainOf(frames))
			}
		}
	}
	return nil
}

// TestRuntimesV8Labels: where a label of a thread context of Node.js names the function that
// runs, each sample's label is that of the function on its stack, with the garbage collector
// running, and in an asynchronous function that goes on.
func TestRuntimesV8Labels(t *testing.T) {
	releases := ends([]string{"22", "24", "26"})
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			node, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules", "node"+release, "bin", "node"))
			require.NoError(t, err)
			script, err := filepath.Abs(filepath.Join(nodeBuild, "functions.js"))
			require.NoError(t, err)
			args := []string{script}
			if release == "22" {
				args = slices.Insert(args, 0, "--experimental-async-context-frame") // the default from 24 on
			}
			w := testutil.StartPath(t, node, args...)
			lowerPriority(t, w.PID)
			out := &v8LabelSink{pid: int64(w.PID)}
			startReceiver(t, out, func(c *customlabelsreceiver.Config) {
				c.SamplesPerSecond = v8Rate
				c.ReportInterval = 500 * time.Millisecond
			}, manySets)
			require.Eventually(t, func() bool {
				out.mu.Lock()
				defer out.mu.Unlock()
				return out.agree+out.disagree >= v8LabelSamples/len(releases)
			}, 3*time.Minute, 50*time.Millisecond)
			out.mu.Lock()
			defer out.mu.Unlock()
			t.Logf("Node.js %s: %d agree, %d do not, %d without a label, %d outside of the functions",
				release, out.agree, out.disagree, out.unlabelled, out.outside)
			require.Empty(t, out.odd)
			assert.Greater(t, float64(out.agree), v8MinLabelled*float64(out.agree+out.unlabelled))
		})
	}
}
