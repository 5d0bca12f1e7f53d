//go:build linux

package process

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// unreadableRuntime counts how often it is opened, which fails.
type unreadableRuntime struct{ opened int }

func (*unreadableRuntime) Kind() record.RuntimeKind { return record.RuntimeHotSpot }

func (r *unreadableRuntime) Open(langruntime.Memory, uint64) (langruntime.Process, error) {
	r.opened++
	return nil, langruntime.ErrStarting
}

// However often a process whose runtime makes no sense has itself looked at, that is read every
// few seconds.
func TestUnreadableRuntime(t *testing.T) {
	f, _, p := contextFake(t)
	runtime := &unreadableRuntime{}
	file := executable.NewFile(procfs.FileID{}, "", executable.Facts{Runtime: runtime}, nil)
	info := &Info{Mappings: []executable.Mapping{{File: file, Biased: true}}}
	f.opts.Runtimes[record.RuntimeHotSpot] = true
	look := func(d, every time.Duration) int {
		before := runtime.opened
		for range d / every {
			require.Nil(t, f.openRuntime(p, info))
			f.advance(int64(every))
		}
		return runtime.opened - before
	}
	require.Equal(t, 3, look(6*startingGap, startingGap), "at 0, 1 and 3 gaps")
	look(10*time.Second, 10*time.Millisecond)
	require.EqualValues(t, 1, f.Stats().RuntimesUnreadable, "it is not starting")
	require.LessOrEqual(t, look(time.Minute, 10*time.Millisecond), 12)
	require.GreaterOrEqual(t, look(time.Minute, 10*time.Second), 5, "it may have been slow")
}

// A runtime that is starting is opened when it is time, whatever is done for the process before.
func TestStartingRuntimeIsNotForgotten(t *testing.T) {
	f, _, p := contextFake(t)
	file := executable.NewFile(procfs.FileID{}, "", executable.Facts{Runtime: &unreadableRuntime{}}, nil)
	info := &Info{Mappings: []executable.Mapping{{File: file, Biased: true}}}
	f.opts.Runtimes[record.RuntimeHotSpot] = true
	require.Nil(t, f.openRuntime(p, info))
	due := p.worker().opened.againNs
	for range 3 {
		require.NotZero(t, p.work&workUnwind)
		require.Equal(t, due, p.dueNs)
		p.work = 0 // done with other work, which is due sooner
		f.advance(int64(startingGap) / 4)
		require.Nil(t, f.openRuntime(p, info))
	}
	require.NotZero(t, p.work&workUnwind)
	require.Equal(t, due, p.dueNs)
}
