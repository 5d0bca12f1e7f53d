//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup/wakeuptest"
)

// The last batches wait for what workers read, whom the alarm wakes: it goes on when sampling ends.
func TestAlarmOutlivesSampling(t *testing.T) {
	seconds, err := wakeup.New(time.Hour, -1)
	require.NoError(t, err)
	f := &follower{seconds: seconds, alarm: wakeuptest.Alarm(t), stopped: make(chan struct{})}
	f.stop()
	f.alarm.Set(time.Millisecond)
	require.NoError(t, f.alarm.Wait())
	f.close()
	require.Error(t, f.alarm.Wait())
}

// Repairs come seldom while nothing happens, and soon where something does.
func TestRepairsHurry(t *testing.T) {
	seconds, err := wakeup.NewSlowing(time.Millisecond, time.Hour, -1)
	require.NoError(t, err)
	var told []record.Event
	hurries := 0
	f := &follower{
		seconds: seconds, alarm: wakeuptest.Alarm(t), hurry: func() { hurries++ },
		handle: func(events []record.Event) bool { told = append(told, events...); return len(told) > 1 },
	}
	t.Cleanup(f.close)
	wait := func() bool { ticked, err := seconds.Wait(nil); return ticked && err == nil }
	require.True(t, wait(), "the first one")
	for n := range 2 {
		f.take([]record.Event{{PID: n}})
		require.True(t, wait())
		require.True(t, f.some.Swap(false))
		require.Equal(t, n, hurries, "only where the table says so")
	}
	require.Equal(t, []record.Event{{PID: 0}, {PID: 1}}, told)
}

// TestEventLoss has the events of processes find no room while many begin: when the reader
// goes on, all of them get known with the labels that they have. None is sampled.
func TestEventLoss(t *testing.T) {
	testutil.RequireBPF(t)
	path := filepath.Join(testutil.BuildWriters(t), "writer-v1-lib")
	o := Defaults()
	o.Next.Profiles = consumertest.NewNop()
	o.SamplesPerSecond = 1
	o.ReportInterval = 100 * time.Millisecond
	p, err := newPipeline(o, os.Getpagesize())
	require.NoError(t, err)
	var stalled atomic.Bool
	var hurries atomic.Int64
	hurry := p.follower.hurry
	p.follower.hurry = func() { hurries.Add(1); hurry() }
	p.follower.handle = func(events []record.Event) bool {
		for stalled.Load() {
			time.Sleep(time.Millisecond)
		}
		return p.table.HandleEvents(events)
	}
	require.NoError(t, p.Start(t.Context()))
	defer func() { require.NoError(t, p.Shutdown(context.Background())) }()

	stalled.Store(true)
	begun := map[uint32]bool{}
	for range 40 {
		// Without threads, it only waits.
		cmd := exec.Command(path, "storm", "--threads", "1", "--seconds", "300")
		require.NoError(t, cmd.Start())
		begun[uint32(cmd.Process.Pid)] = true
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}()
	}
	lost := p.streams[0].bpfCounters().EventsDropped
	require.NotZero(t, lost, "no event was lost")
	stalled.Store(false)
	began := time.Now()
	require.Eventually(t, func() bool { return labelledAs(t, p, begun) == len(begun) }, time.Minute, 20*time.Millisecond)
	require.NotZero(t, hurries.Load(), "processes began")
	t.Logf("%d events were lost; all processes were known %v later", lost, time.Since(began).Round(time.Millisecond))
}

// When mappings may have been made of which no event tells, all processes are looked at, whatever is
// wrong with CPUs; and not otherwise.
func TestMappingsLostWithCPU(t *testing.T) {
	var told []record.Event
	var lost bool
	var wrong error
	f := &follower{
		log: zap.NewNop(), report: func(Concern, error) {},
		handle: func(events []record.Event) bool { told = append(told, events...); return false },
		update: func() (bool, error) { return lost, wrong },
	}
	f.followCPUs(&repairs{})
	require.Empty(t, told)
	lost, wrong = true, errors.New("one has no room")
	f.followCPUs(&repairs{})
	require.Equal(t, []record.Event{{Kind: record.EventMappingsLost}}, told)
}

// While processes cannot be listed after events of some were lost, that is said once, and tried again without another
// event; when they can be, that is told, and all are looked at.
func TestListFails(t *testing.T) {
	const lost, fails = 7, 3
	core, said := observer.New(zap.WarnLevel)
	seconds, err := wakeup.New(time.Millisecond, -1)
	require.NoError(t, err)
	var told []error
	var made []record.Event
	listed := make(chan struct{})
	lists := 0
	f := &follower{
		log: zap.New(core), seconds: seconds, alarm: wakeuptest.Alarm(t), stream: &stream{final: &bpf.Counters{EventsDropped: lost}},
		report: func(of Concern, err error) { require.Equal(t, ConcernProcesses, of); told = append(told, err) },
		handle: func(events []record.Event) bool { made = append(made, events...); close(listed); return false },
		update: func() (bool, error) { return false, nil },
		list: func() error {
			if lists++; lists <= fails {
				return errors.New("too many open files")
			}
			return nil
		},
	}
	f.some.Store(true)
	ended := make(chan struct{})
	go func() { f.repair(); close(ended) }()
	select {
	case <-listed:
	case <-time.After(time.Minute):
		t.Error("it is not tried again")
	}
	f.close()
	<-ended
	require.Equal(t, fails+1, lists)
	require.Equal(t, []record.Event{{Kind: record.EventLost}}, made)
	require.Len(t, told, 2)
	require.ErrorContains(t, told[0], "cannot be listed again: some are missing: too many open files")
	require.NoError(t, told[1])
	require.Len(t, said.All(), 1)

	r := repairs{madeUpFor: bpf.Counters{EventsDropped: lost - 1}}
	handled := 0
	f.handle = func([]record.Event) bool { handled++; return false }
	f.followLosses(&r)
	f.followLosses(&r)
	require.Equal(t, fails+2, lists, "once for what was lost")
	require.Equal(t, 1, handled)
	f.stream.final.EventsMissed = 1
	f.followLosses(&r)
	f.followLosses(&r)
	require.Equal(t, fails+3, lists, "once for what the programs have missed")
	require.Equal(t, 1, handled, "nobody is looked at for that")
	require.Len(t, told, 2)
}

// labelledAs counts the processes, of those with some PIDs, whose label sources are
// published under the identity that they have now.
func labelledAs(t *testing.T, p *Pipeline, pids map[uint32]bool) (n int) {
	t.Helper()
	now := map[record.ProcessID]bool{}
	require.NoError(t, p.sampler.Scan(func(ev record.Event) { now[ev.Process] = pids[uint32(ev.PID)] }))
	const handles = 1 << 16 // more than the table has given
	for handle := range uint64(handles) {
		proc, ok := p.table.Process(handle)
		if !ok || !now[proc.ID()] {
			continue
		}
		if sources := proc.Info().Sources; len(sources) > 0 && sources[0].State == labelsource.Active {
			n++
		}
	}
	return n
}
