//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup/wakeuptest"
)

// labelBlock is a block of a label section (internal/bpf/src/record.h).
func labelBlock(abi record.ABI, payload []byte) []byte {
	b := make([]byte, 16, 16+len(payload)+8)
	b[0], b[1] = byte(abi), byte(record.OutcomePresent)
	binary.LittleEndian.PutUint16(b[2:], uint16(len(payload)))
	return append(b, payload...)[:16+(len(payload)+7)&^7]
}

// oneLabel is a section with one custom label.
func oneLabel(key, value string) []byte {
	var p []byte
	p = binary.LittleEndian.AppendUint32(p, uint32(len(key)))
	p = binary.LittleEndian.AppendUint32(p, uint32(len(value)))
	p = binary.LittleEndian.AppendUint16(p, uint16(len(key)))
	p = binary.LittleEndian.AppendUint16(p, uint16(len(value)))
	return labelBlock(record.ABIV1, append(append(p, key...), value...))
}

// unnamedAttribute is a section with a thread context that refers to a name.
func unnamedAttribute() []byte {
	context := make([]byte, 28, 31)
	context[24], context[26] = 1, 3
	return labelBlock(record.ABIThreadContext, append(context, 7, 1, 'x'))
}

// unpublished is a process.Publisher that does nothing.
type unpublished struct{}

func (unpublished) SetLabelSources(record.ProcessID, []record.LabelSource) error { return nil }
func (unpublished) Filter(record.ProcessID) error                                { return nil }
func (unpublished) Forget(record.ProcessID) error                                { return nil }
func (unpublished) ForgetRunning(record.ProcessID) error                         { return nil }

// testAggregator has an empty batch; its table's /proc is a directory.
func testAggregator(t *testing.T, change func(*Options), selection *process.Selection) (d *aggregator, proc string) {
	t.Helper()
	o, _ := testOptions(change)
	registry, err := newRegistry(&o.Labels, zap.NewNop())
	require.NoError(t, err)
	proc = t.TempDir()
	table := process.NewTable(process.Options{FS: procfs.FS{Root: proc}, Publisher: unpublished{}, Selection: selection, Alarm: wakeuptest.Alarm(t)})
	e := newCPUOutput(o, table, procfs.FS{})
	of := newAggregator(o, registry, e.output, e.cpu)
	of.batch = e.newBatch(e.cpu)
	return &of, proc
}

// readProcess has the table read a process of the given path and container.
func readProcess(t *testing.T, d *aggregator, proc string, pid int, path, container string) *bpf.Record {
	t.Helper()
	defer runTable(t, d)()
	return readRunning(t, d, proc, pid, path, container)
}

// runTable runs the table until stop is called. It runs once only.
func runTable(t *testing.T, d *aggregator) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { d.table.Run(ctx) })
	return func() {
		cancel()
		run.Wait()
	}
}

// readRunning is readProcess of a table that runs. What the process maps may be there already.
func readRunning(t *testing.T, d *aggregator, proc string, pid int, path, container string) *bpf.Record {
	t.Helper()
	dir := filepath.Join(proc, fmt.Sprint(pid))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{
		"stat":   fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 4096 1 0 0 0 0\n", pid),
		"status": "Uid:\t10\t10\t10\t10\n", "cgroup": "0::/" + container + "\n", "maps": "", "cmdline": path + "\x00",
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); name == "maps" && err == nil {
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "exe")))
	rec := &bpf.Record{Process: record.ProcessID{TGID: uint32(pid), StartNs: 5e9}, PID: uint32(pid), TID: uint32(pid), UID: 10, TimeNs: monotonicNow()}
	p := d.table.Lookup(rec.Process, pid, 0, nil)
	require.Eventually(t, func() bool { return p.Info().Loaded }, time.Minute, time.Millisecond)
	return rec
}

// Keys are counted once, however many batches wait with the label sets of their intervals.
func TestKeysAreCountedOnce(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	d.memory = budget.NewMemory(1 << 30)
	held := func() int { return int(d.memory.Part(budget.OfLabels)) / 2 } // what is on Go's heap counts twice
	const keys = 900
	sets := 0
	for range 3 {
		for i := range keys {
			rec := &bpf.Record{
				Process: record.ProcessID{TGID: 1, StartNs: 2}, TID: 12, PID: 11, UID: 10, TimeNs: monotonicNow(),
				Labels: oneLabel(fmt.Sprint(strings.Repeat("k", 200), i), "1"),
			}
			d.add(rec, timeOff{})
		}
		d.labelsHeld.set(d.memory, budget.OfLabels, d.labels.Bytes())
		before, reads := held(), d.labels.ReadBytes()
		d.releaseLabels()
		require.InDelta(t, before-reads, held(), weightStep)
		sets += d.batch.labels
		d.batch.labels = 0
		d.labels.EndInterval(0)
		require.InDelta(t, d.labels.KeyBytes(), d.labelsHeld.counted, weightStep)
		require.InDelta(t, sets+d.labels.KeyBytes(), held(), weightStep)
	}
	require.Greater(t, d.labels.KeyBytes(), keys*200)
}

// What a record says of a sample is in the sample, and counts for its user.
func TestAggregate(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	rec := &bpf.Record{
		Process: record.ProcessID{TGID: 1, StartNs: 2}, TID: 12, PID: 11, UID: 10, CPU: 3, TimeNs: monotonicNow(),
		State: record.ThreadUninterruptible, Comm: []byte("comm"), Labels: oneLabel("of ten", "1"),
		KernelFrames: []uint64{1, 2}, UserFrames: []uint64{3},
		KernelStack: record.OutcomeTruncated, UserStack: record.OutcomePresent,
	}
	d.add(rec, timeOff{})
	at := rec.TimeNs + d.batch.clockOffset
	got := d.sample
	require.Equal(t, labels.Label{Key: "of ten", Value: "1", Source: record.ABIV1}, firstLabel(got.Set))
	got.Set = nil
	require.Equal(t, profile.Sample{
		Process: d.table.Lookup(rec.Process, 11, 0, nil).Handle(), TimeUnixNano: at, State: record.ThreadUninterruptible,
		TID: 12, Comm: rec.Comm, CPU: 3, KernelFrames: rec.KernelFrames, UserFrames: rec.UserFrames,
		KernelStack: record.OutcomeTruncated, UserStack: record.OutcomePresent,
	}, got)

	rec.UID, rec.Labels = 20, oneLabel("of twenty", "1")
	d.add(rec, timeOff{endNs: rec.TimeNs + 500, weight: 7})
	require.Equal(t, at+500, d.sample.TimeUnixNano)
	require.EqualValues(t, 7, d.sample.OffCPUNs)
	require.Len(t, d.batch.users, 2)
	require.Equal(t, 1, d.batch.users[10].builder.Samples())
	require.Equal(t, 1, d.batch.users[20].builder.Samples())
	d.registry.Users(func(u *labels.UserStats) { require.Equal(t, 1, u.Used[labels.BudgetKeys], "%+v", u) })
}

// A sample belongs to the epoch of its process in which it was taken; metrics do not tell epochs apart.
func TestAggregateEpoch(t *testing.T) {
	d, proc := testAggregator(t, func(*Options) {}, nil)
	rec := readProcess(t, d, proc, 77, "/bin/some", "")
	after := *rec
	after.TimeNs = monotonicNow() + 1e9
	d.table.HandleEvent(record.Event{Kind: record.EventMapping, PID: 77, TimeNs: after.TimeNs - 1, FileNs: after.TimeNs - 1})
	d.add(rec, timeOff{})
	require.Zero(t, d.sample.Epoch)
	d.add(&after, timeOff{endNs: after.TimeNs + 1})
	require.EqualValues(t, 1, d.sample.Epoch)
	rec.TimeNs = after.TimeNs - 2 // it left the CPU before, and was back later
	d.add(rec, timeOff{endNs: after.TimeNs + 1})
	require.Zero(t, d.sample.Epoch)
	d.profiles = false
	d.add(&after, timeOff{})
	require.Zero(t, d.sample.Epoch)
}

// Samples that are read after the clock was set, or the machine was suspended, have the time of then, in
// a batch of their own. What clocks that are read one after the other differ by is no reason for one.
func TestClockSet(t *testing.T) {
	for _, test := range []struct {
		ahead time.Duration
		set   bool
	}{
		{0, false}, {maxClockError / 2, false}, {-maxClockError / 2, false}, {time.Hour, true}, {-time.Hour, true},
	} {
		t.Run(test.ahead.String(), func(t *testing.T) {
			d, _ := testAggregator(t, func(*Options) {}, nil)
			fill(d.batch, 10, 1, "before")
			before := d.batch
			before.clockOffset -= uint64(test.ahead)
			rec := &bpf.Record{Process: record.ProcessID{TGID: 1, StartNs: 1}, UID: 10, TimeNs: monotonicNow()}
			d.add(rec, timeOff{})
			d.add(rec, timeOff{})
			if !test.set {
				require.Same(t, before, d.batch)
				require.Equal(t, 3, d.batch.samples())
				return
			}
			require.Len(t, d.stream.pending, 1)
			require.Same(t, before, <-d.stream.pending)
			require.Equal(t, 1, before.samples())
			require.Equal(t, 2, d.batch.samples())
			require.WithinDuration(t, time.Now(), time.Unix(0, int64(d.sample.TimeUnixNano)), time.Minute)
		})
	}
}

// A thread that left the CPU before the clock was set, and is back afterwards, has the time of then.
func TestClockSetWhileOff(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	rec := &bpf.Record{Process: record.ProcessID{TGID: 1, StartNs: 1}, UID: 10, TimeNs: monotonicNow()}
	d.add(rec, timeOff{})
	before := d.batch
	before.clockOffset -= uint64(time.Hour)
	d.add(rec, timeOff{endNs: rec.TimeNs + uint64(2*clockGap), weight: 1})
	require.NotSame(t, before, d.batch)
	require.WithinDuration(t, time.Now(), time.Unix(0, int64(d.sample.TimeUnixNano)), time.Minute)
}

func firstLabel(s *labels.Set) (first labels.Label) {
	for first = range s.All() {
		break
	}
	return first
}

// Rules go by the executable that a process was found to run, not by what exec was asked for,
// and containers have budgets of their own.
func TestAggregateOrigin(t *testing.T) {
	const container = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	d, proc := testAggregator(t, func(o *Options) {
		o.Labels.PerContainer = true
		o.Labels.Rules = []labels.Rule{{Key: "secret", Executable: "/bin/hidden", Action: labels.Drop}}
	}, nil)
	left := func(rec *bpf.Record) int {
		rec.UID, rec.Labels = 10, oneLabel("secret", "1")
		d.add(rec, timeOff{})
		return d.sample.Set.Len()
	}
	asked := record.Event{Kind: record.EventExec, Process: record.ProcessID{TGID: 1, StartNs: 1}, Path: "/bin/other"}
	d.table.HandleEvent(asked)
	require.Zero(t, left(&bpf.Record{Process: asked.Process}), "it may be the hidden one")
	require.Zero(t, left(readProcess(t, d, proc, 2, "/bin/hidden", container)))
	require.Equal(t, 1, left(readProcess(t, d, proc, 3, "/bin/other", container)))
	slots := func() (n int) {
		d.registry.Users(func(u *labels.UserStats) { n += u.Slots })
		return n
	}
	require.Equal(t, 2, slots(), "that of the container, and one for those of which it is not known")
	left(readProcess(t, d, proc, 4, "/bin/other", strings.Repeat("1", len(container))))
	left(readProcess(t, d, proc, 5, "/bin/other", ""))
	require.Equal(t, 4, slots())
}

// Samples of processes that are not wanted, and those without memory, are left out and counted.
func TestAggregateLeavesOut(t *testing.T) {
	d, proc := testAggregator(t, func(*Options) {}, &process.Selection{Wants: func(*process.Info) bool { return false }})
	d.add(readProcess(t, d, proc, 2, "/bin/x", ""), timeOff{})
	require.Empty(t, d.batch.users)
	require.EqualValues(t, 1, d.stream.filtered[FilterTarget].Load())

	d, _ = testAggregator(t, func(*Options) {}, nil)
	fill(d.batch, 10, 1000, "large")
	rec := &bpf.Record{Process: record.ProcessID{TGID: 1, StartNs: 1}, UID: 10}
	d.add(rec, timeOff{})
	require.Equal(t, 1001, d.batch.samples())
	d.memory.Add(budget.OfBatches, int(d.memory.Limit()))
	d.add(rec, timeOff{})
	require.Equal(t, 1001, d.batch.samples())
	require.EqualValues(t, 1, d.stream.dropped[DropNoMemory].Load())
}

// A sample that waits for a name is its own, waits no longer than it may, and counts once.
func TestAwaiting(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	rec := &bpf.Record{
		Process: record.ProcessID{TGID: 1, StartNs: 1}, PID: 1, UID: 10, TimeNs: monotonicNow(),
		Labels: unnamedAttribute(), KernelFrames: []uint64{1}, UserFrames: []uint64{2, 3}, Comm: []byte("comm"),
	}
	d.add(rec, timeOff{})
	require.Len(t, d.awaiting.samples, 1)
	clear(rec.Labels)
	clear(rec.KernelFrames)
	clear(rec.UserFrames)
	clear(rec.Comm)
	d.settle(rec.TimeNs + uint64(maxAwait) - 1)
	require.Len(t, d.awaiting.samples, 1)
	require.Zero(t, d.batch.samples())
	d.settle(rec.TimeNs + uint64(maxAwait+settleGap))
	require.Equal(t, 1, d.batch.samples())
	require.Equal(t, []uint64{1}, d.sample.KernelFrames)
	require.Equal(t, []uint64{2, 3}, d.sample.UserFrames)
	require.Equal(t, "comm", string(d.sample.Comm))
	require.EqualValues(t, 1, d.counts.anomalies[labels.AnomalyUnknownKey].Load())
	require.EqualValues(t, 1, d.counts.labelReads[record.ABIThreadContext][record.OutcomePresent].Load())
	require.Zero(t, d.awaiting.bytes)
	require.Empty(t, d.awaiting.byUser)
}

// A sample that waits does not hold up one of another process, which came later.
func TestAwaitingOfTwoProcesses(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	add := func(pid uint32) *bpf.Record {
		rec := &bpf.Record{
			Process: record.ProcessID{TGID: pid, StartNs: 1}, PID: pid, UID: pid, TimeNs: monotonicNow(), Labels: unnamedAttribute(),
		}
		d.add(rec, timeOff{})
		return rec
	}
	add(1)
	second := add(2)
	require.Len(t, d.awaiting.samples, 2)
	d.awaiting.samples[1].awaitsNames = false // they are known by now
	d.settle(second.TimeNs)
	require.Equal(t, 1, d.batch.samples())
	require.Len(t, d.awaiting.samples, 1)
	require.EqualValues(t, 1, d.awaiting.samples[0].record.UID)
	require.Equal(t, map[uint32]int{1: d.awaiting.bytes}, d.awaiting.byUser)
}

// Samples are read soon while they refer to what is new: functions of language runtimes, and names.
func TestAggregateHurries(t *testing.T) {
	d, _ := testAggregator(t, func(o *Options) { o.Symbols.Skip = false }, nil)
	source := d.stream.source.(*unhurried)
	rec := &bpf.Record{
		Process: record.ProcessID{TGID: 1, StartNs: 1}, PID: 1, UID: 10, TimeNs: monotonicNow(), UserFrames: []uint64{2, 3},
	}
	d.add(rec, timeOff{})
	require.Zero(t, source.hurries)
	function := []uint64{uint64(record.NewRuntimeWord(record.RuntimeCPython, 1, 2)), 0x7f0000000000}
	for range 3 {
		rec.UserFrames = function
		d.add(rec, timeOff{})
		rec.UserFrames = append([]uint64{2}, function...) // another stack, of the same function
		d.add(rec, timeOff{})
	}
	require.Equal(t, 1, source.hurries)
	rec.Labels = unnamedAttribute()
	d.add(rec, timeOff{})
	require.Equal(t, 2, source.hurries)
}

// Samples wait for at most half of the interval of a batch.
func TestReadDelayOfInterval(t *testing.T) {
	o, _ := testOptions(func(o *Options) { o.ReportInterval = 100 * time.Millisecond })
	config := samplerConfig(o, bpf.CPUs{Online: 1, Possible: 1, Room: 1}, nil, 0)
	require.Equal(t, 50*time.Millisecond, config.MaxReadDelay)
}

// A batch is handed over when its interval has passed; that it was late does not put off the next.
func TestHandOverAt(t *testing.T) {
	const interval = 5 * time.Second
	d, _ := testAggregator(t, func(o *Options) { o.ReportInterval = interval }, nil)
	first := d.endNs
	handsOver := func(now uint64) bool {
		before := d.batch
		d.handOverAt(now)
		if d.batch == before {
			return false
		}
		require.Equal(t, now, before.endMono)
		require.Equal(t, now, d.batch.startMono, "whatever the time is")
		return true
	}
	require.False(t, handsOver(first-1))
	require.True(t, handsOver(first+uint64(interval/10)))
	require.False(t, handsOver(first+uint64(interval)-1))
	require.True(t, handsOver(first+uint64(interval)))
	require.True(t, handsOver(first+uint64(10*interval)), "it is late by far")
	require.False(t, handsOver(first+uint64(11*interval)-1))
	require.True(t, handsOver(first+uint64(11*interval)))
}

// A user who has had no labels for long makes room for another one's.
func TestAggregateMakesRoom(t *testing.T) {
	d, _ := testAggregator(t, func(o *Options) { o.Labels.Budgets.Users = 1 }, nil)
	has := func(uid uint32) bool {
		d.add(&bpf.Record{Process: record.ProcessID{TGID: uid, StartNs: 1}, UID: uid, Labels: oneLabel("k", "1")}, timeOff{})
		slots := map[uint32]int{}
		d.registry.Users(func(u *labels.UserStats) { slots[u.UID] += u.Slots })
		return slots[uid] == 1
	}
	after := func(pause time.Duration) {
		for range 3 { // the user is there, is idle, was idle
			d.handOverAt(d.endNs + uint64(pause/2))
		}
	}
	require.True(t, has(10))
	after(time.Second)
	require.False(t, has(20))
	require.EqualValues(t, 1, d.registry.OthersSamples())
	after(time.Hour)
	require.False(t, has(20), "its user id is not among the first")
	require.EqualValues(t, 1, d.registry.OthersSamples(), "but it has a slot")
	after(time.Hour)
	require.True(t, has(10))
}

// What was read of labels is forgotten where memory is short, however little is in the batch.
func TestReadsForgotten(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	for i := range 200 {
		d.labels.Decode(labels.Origin{}, nil, oneLabel(strings.Repeat("k", 1000), fmt.Sprint(i)))
	}
	read := d.labels.ReadBytes()
	require.Greater(t, read, minForgotten)
	d.handOverAt(d.batch.startMono)
	require.Equal(t, read, d.labels.ReadBytes())
	before := d.labels.Bytes()
	d.memory.Add(budget.OfBatches, int(d.memory.Limit())*7/8)
	d.handOverAt(d.batch.startMono)
	require.Zero(t, d.labels.ReadBytes())
	require.Equal(t, before-read, d.labels.Bytes())
}

// All that wait are bounded, whoever's they are.
func TestAwaitingOfManyUsers(t *testing.T) {
	var a awaiting
	for uid := range uint32(10_000) {
		a.add(nil, &bpf.Record{UID: uid, Labels: make([]byte, 4096)}, timeOff{}, true)
	}
	require.LessOrEqual(t, a.bytes, maxAwaitingBytes)
	require.Less(t, len(a.samples), 10_000)
}

// Labels from sources that were presumed wait until these are confirmed, and are dropped if
// they are not.
func TestUnconfirmed(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	rec := &bpf.Record{
		Process: record.ProcessID{TGID: 1, StartNs: 1}, PID: 1, UID: 10, TimeNs: monotonicNow(), Presumed: true, Labels: oneLabel("a", "1"),
	}
	d.add(rec, timeOff{})
	d.settle(rec.TimeNs)
	require.Zero(t, d.batch.samples(), "it waits")
	d.settle(rec.TimeNs + uint64(maxAwait))
	require.Equal(t, 1, d.batch.samples())
	require.Zero(t, d.sample.Set.Len())
	require.EqualValues(t, 1, d.counts.anomalies[labels.AnomalyUnconfirmedSource].Load())
}
