//go:build linux

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/executable"
	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// unreadableRuntime counts how often it is opened, which fails.
type unreadableRuntime struct {
	opened int
	opens  func()
}

func (*unreadableRuntime) Kind() record.RuntimeKind { return record.RuntimeHotSpot }

func (r *unreadableRuntime) Open(langruntime.Memory, uint64) (langruntime.Process, error) {
	r.opened++
	if r.opens != nil {
		r.opens()
	}
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

// One that takes long to open is opened less often.
func TestCostlyRuntime(t *testing.T) {
	f, _, p := contextFake(t)
	f.opts.cpuTime = f.clock.Load
	const cost = 100 * time.Millisecond
	runtime := &unreadableRuntime{opens: func() { f.advance(int64(cost)) }}
	file := executable.NewFile(procfs.FileID{}, "", executable.Facts{Runtime: runtime}, nil)
	info := &Info{Mappings: []executable.Mapping{{File: file, Biased: true}}}
	f.opts.Runtimes[record.RuntimeHotSpot] = true
	began := f.now()
	for f.now() < began+int64(10*retryCostShare*cost) {
		require.Nil(t, f.openRuntime(p, info))
		f.advance(int64(10 * time.Millisecond))
	}
	require.InDelta(t, 10, runtime.opened, 1)
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

// fakeRuntime opens as itself, or fails.
type fakeRuntime struct {
	langruntime.Process
	kind   record.RuntimeKind
	err    error
	opened int
}

func (r *fakeRuntime) Kind() record.RuntimeKind { return r.kind }

func (r *fakeRuntime) Open(langruntime.Memory, uint64) (langruntime.Process, error) {
	r.opened++
	return r, r.err
}

// mapping is one of a file that has the runtime.
func (r *fakeRuntime) mapping(path string) executable.Mapping {
	return executable.Mapping{File: executable.NewFile(procfs.FileID{}, path, executable.Facts{Runtime: r}, nil), Path: path, Biased: true}
}

// Of several runtimes of a process the first that can be read counts, for as long as it is mapped.
func TestSeveralRuntimes(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	f, _, p := contextFake(t)
	f.log = zap.New(core)
	f.opts.Runtimes[record.RuntimeHotSpot], f.opts.Runtimes[record.RuntimeCPython] = true, true
	python, java := &fakeRuntime{kind: record.RuntimeCPython}, &fakeRuntime{kind: record.RuntimeHotSpot}
	old := &fakeRuntime{kind: record.RuntimeHotSpot, err: fmt.Errorf("%w: HotSpot 11", langruntime.ErrUnsupported)}
	of := map[*fakeRuntime]executable.Mapping{python: python.mapping("python"), java: java.mapping("java"), old: old.mapping("old")}
	open := func(runtimes ...*fakeRuntime) langruntime.Process {
		info := &Info{}
		for _, r := range runtimes {
			info.Mappings = append(info.Mappings, of[r], of[r])
		}
		return f.openRuntime(p, info)
	}
	require.Same(t, python, open(python))
	require.Zero(t, logs.Len())
	for range 3 {
		require.Same(t, python, open(old, java, python), "it is open")
	}
	require.Equal(t, 1, logs.Len())
	require.Equal(t, "python", logs.All()[0].ContextMap()["file"])
	require.Zero(t, java.opened)

	for range 3 {
		require.Same(t, java, open(old, java), "it was unmapped")
	}
	require.Equal(t, 1, java.opened)
	require.Equal(t, 1, old.opened)
	require.Equal(t, 2, logs.Len(), "a refused one is told of once")
	require.Equal(t, "old", logs.All()[1].ContextMap()["file"])
	require.EqualValues(t, 1, f.Stats().RuntimesUnsupported)

	require.Nil(t, open(old))
	require.Equal(t, 1, old.opened, "it was refused")
	require.Nil(t, open())
	require.Nil(t, open(old))
	require.Equal(t, 2, old.opened, "it was mapped anew")
}

// A file in two places is one runtime: V8 maps its own there.
func TestRuntimeMappedTwice(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	f, _, p := contextFake(t)
	f.log = zap.New(core)
	f.opts.Runtimes[record.RuntimeV8] = true
	node := &fakeRuntime{kind: record.RuntimeV8}
	first, second := node.mapping("node"), node.mapping("node")
	second.Bias++
	for range 3 {
		require.Same(t, node, f.openRuntime(p, &Info{Mappings: []executable.Mapping{first, second}}))
	}
	require.Zero(t, logs.Len())
}

// A runtime that never starts does not keep another one of the process from being read.
func TestRuntimeBesideOneThatNeverStarts(t *testing.T) {
	f, _, p := contextFake(t)
	f.opts.Runtimes[record.RuntimeHotSpot], f.opts.Runtimes[record.RuntimeCPython] = true, true
	python := &fakeRuntime{kind: record.RuntimeCPython}
	java := &fakeRuntime{kind: record.RuntimeHotSpot, err: langruntime.ErrStarting}
	info := &Info{Mappings: []executable.Mapping{java.mapping("java"), python.mapping("python")}}
	for range maxStarting {
		require.Nil(t, f.openRuntime(p, info))
		f.advance(int64(startingGap) << maxStarting)
	}
	require.Same(t, python, f.openRuntime(p, info))
	require.Equal(t, maxStarting+1, java.opened)
}

// However many runtimes a process maps that are refused, few of them are read.
func TestManyRefusedRuntimes(t *testing.T) {
	f, _, p := contextFake(t)
	f.opts.Runtimes[record.RuntimeHotSpot] = true
	old := &fakeRuntime{kind: record.RuntimeHotSpot, err: langruntime.ErrUnsupported}
	info := &Info{}
	for i := range 100 {
		m := old.mapping("old")
		m.Bias = uint64(i) << 20
		info.Mappings = append(info.Mappings, m)
	}
	for range 3 {
		require.Nil(t, f.openRuntime(p, info))
	}
	require.Equal(t, maxRefused, old.opened)
}
