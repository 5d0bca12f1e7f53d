//go:build linux && (amd64 || arm64)

package bench

import (
	"context"
	"runtime"
	"slices"
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

// tellOfTargets has samplers know of all targets what the receiver tells of a process that has
// been looked at: its label sources, and which unwind rows hold where.
func tellOfTargets(t *testing.T, cases []*recordCase, samplers ...*bpf.Sampler) {
	t.Helper()
	for _, s := range samplers {
		tellOf(t, cases, s)
	}
}

func tellOf(t *testing.T, cases []*recordCase, s *bpf.Sampler) {
	t.Helper()
	p := &publisher{
		Sampler: s,
		states:  map[record.ProcessID]record.LabelSource{}, sources: map[record.ProcessID]int{}, rows: map[record.ProcessID]bool{},
	}
	table := process.NewTable(process.Options{
		FS: procfs.FS{Root: "/proc"}, Publisher: p, Unwinder: p, NameFile: s.NameFile, Alarm: wakeuptest.Alarm(t),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { table.Run(ctx) })
	defer running.Wait()
	defer cancel()

	want := map[record.ProcessID]int{} // its sources
	require.NoError(t, s.Scan(func(ev record.Event) {
		for _, c := range cases {
			if !c.load.has(uint32(ev.PID)) {
				continue
			}
			want[ev.Process] = 1
			if c.variant == recordNoABI {
				want[ev.Process] = 0
			}
			if c.state != "" {
				p.state(ev.Process, c.source)
			}
			table.HandleEvent(record.Event{Kind: record.EventExists, Process: ev.Process, PID: ev.PID, TimeNs: ev.TimeNs})
			table.Lookup(ev.Process, ev.PID, 0, nil) // rows are for processes that are sampled
		}
	}))
	require.Len(t, want, len(cases)*runtime.NumCPU())
	require.Eventually(t, func() bool { return p.complete(want) }, time.Minute, 10*time.Millisecond)
}

// stateSource is where a state of testdata/bpf/target.c has its labels: it is a C program,
// in which nobody would look for them.
func stateSource(state string, abi record.ABI, offset int64) record.LabelSource {
	return record.LabelSource{
		ABI: abi, Offset: offset, V8Field: labelstates.V8Field, V8MapType: labelstates.V8MapType,
		Go:    record.GoLayout(labelstates.GoLayout(state)),
		GoMap: strings.HasPrefix(state, "go-map-"),
	}
}

// A publisher is a Sampler that keeps how much it was told.
type publisher struct {
	*bpf.Sampler

	mu      sync.Mutex
	states  map[record.ProcessID]record.LabelSource // instead of what was found
	sources map[record.ProcessID]int
	rows    map[record.ProcessID]bool // all files that it maps have some
}

// state: no source would be found in a process, but this one is to be told.
func (p *publisher) state(id record.ProcessID, source record.LabelSource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.states[id] = source
}

func (p *publisher) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	p.mu.Lock()
	if source, ok := p.states[id]; ok {
		sources = []record.LabelSource{source}
	}
	p.sources[id] = len(sources)
	p.mu.Unlock()
	return p.Sampler.SetLabelSources(id, sources)
}

func (p *publisher) SetUnwindMappings(id record.ProcessID, mappings []record.UnwindMapping, execPages uint64) error {
	p.mu.Lock()
	p.rows[id] = len(mappings) > 0 && !slices.ContainsFunc(mappings, func(m record.UnwindMapping) bool { return m.Table == 0 })
	p.mu.Unlock()
	return p.Sampler.SetUnwindMappings(id, mappings, execPages)
}

// complete: each process has as many sources as it should, and all rows.
func (p *publisher) complete(want map[record.ProcessID]int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, sources := range want {
		if n, known := p.sources[id]; !known || n != sources || !p.rows[id] {
			return false
		}
	}
	return true
}
