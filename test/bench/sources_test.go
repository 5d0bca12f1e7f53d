//go:build linux && (amd64 || arm64)

package bench

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil/labelstates"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup/wakeuptest"
)

// setSources finds the label sources of all targets, as the receiver does, and
// tells them to the samplers.
func setSources(t *testing.T, cases []*recordCase, samplers ...*bpf.Sampler) {
	t.Helper()
	p := &collected{sources: map[record.ProcessID][]record.LabelSource{}}
	table := process.NewTable(process.Options{FS: procfs.FS{Root: "/proc"}, Publisher: p, Alarm: wakeuptest.Alarm(t)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { table.Run(ctx) })
	defer running.Wait()
	defer cancel()

	want := map[record.ProcessID]bool{} // whether it has a source
	require.NoError(t, samplers[0].Scan(func(ev record.Event) {
		for _, c := range cases {
			if c.load.has(uint32(ev.PID)) && c.state != "" {
				for _, s := range samplers {
					require.NoError(t, s.SetLabelSources(ev.Process, []record.LabelSource{c.source}))
				}
			} else if c.load.has(uint32(ev.PID)) {
				want[ev.Process] = c.variant != "spin-plain"
				table.HandleEvent(record.Event{
					Kind: record.EventExists, Process: ev.Process, PID: ev.PID, TimeNs: ev.TimeNs,
				})
			}
		}
	}))
	require.Eventually(t, func() bool { return p.complete(want) }, 10*time.Second, 10*time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, sources := range p.sources {
		for _, s := range sources {
			require.NotEqual(t, record.ABINone, s.ABI)
		}
		for _, s := range samplers {
			require.NoError(t, s.SetLabelSources(id, sources))
		}
	}
}

// stateSource is where a state of testdata/bpf/target.c has its labels: it is a C program,
// in which nobody would look for them.
func stateSource(state string, abi record.ABI, offset int64) record.LabelSource {
	return record.LabelSource{
		ABI: abi, Offset: offset, V8Field: labelstates.V8Field, V8MapType: labelstates.V8MapType,
		Go: record.GoLayout{
			GM: labelstates.GoM, GLabels: labelstates.GoLabels, MProcID: labelstates.GoMProcID, MCurG: labelstates.GoMCurG,
		},
		GoMap: strings.HasPrefix(state, "go-map-"),
	}
}

// collected is a process.Publisher that keeps what it is told.
type collected struct {
	mu      sync.Mutex
	sources map[record.ProcessID][]record.LabelSource
}

func (c *collected) Filter(record.ProcessID) error { return nil }

func (c *collected) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources[id] = sources
	return nil
}

func (c *collected) Forget(record.ProcessID) error { return nil }

func (c *collected) ForgetRunning(record.ProcessID) error { return nil }

// complete: each process that has a source was found to have exactly one, and
// of the others it is known that they have none.
func (c *collected) complete(want map[record.ProcessID]bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, has := range want {
		sources, known := c.sources[id]
		if !known || has && len(sources) != 1 || !has && len(sources) != 0 {
			return false
		}
	}
	return len(want) > 0
}
