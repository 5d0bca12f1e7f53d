//go:build linux && (amd64 || arm64)

package pipeline

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// received is one call of ConsumeProfiles.
type received struct {
	users   []string // of the context
	uid     int64    // of the resource; -1: none
	text    []byte   // all of it
	samples int
	starts  []uint64 // of its profiles
}

type recorder struct {
	calls  []received
	refuse int64 // a user, whose batches are refused

	refuseText string // what has it is refused; "": nothing
}

func (r *recorder) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (r *recorder) ConsumeProfiles(ctx context.Context, p pprofile.Profiles) error {
	call := received{users: client.FromContext(ctx).Metadata.Get(metadataUser), uid: -1}
	for _, rp := range p.ResourceProfiles().All() {
		if v, ok := rp.Resource().Attributes().Get("process.real_user.id"); ok {
			call.uid = v.Int()
		}
		of := rp.ScopeProfiles().At(0).Profiles().At(0)
		call.starts = append(call.starts, uint64(of.Time()))
		for _, s := range of.Samples().All() {
			call.samples += s.TimestampsUnixNano().Len()
		}
	}
	var err error // marshalling makes references of attributes
	if call.text, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(p); err != nil {
		return err
	}
	if call.uid == r.refuse || r.refuseText != "" && bytes.Contains(call.text, []byte(r.refuseText)) {
		return errors.New("not this user")
	}
	r.calls = append(r.calls, call)
	return nil
}

// testOptions are the default ones without names of functions, changed, and who gets profiles.
func testOptions(change func(*Options)) (*Options, *recorder) {
	o, out := Defaults(), &recorder{refuse: -2}
	o.Next.Profiles, o.Symbols.Skip = out, true
	change(&o)
	o.complete()
	return &o, out
}

// cpuOutput is an output with the stream of CPU time alone.
type cpuOutput struct {
	*output
	cpu *stream
}

// unhurried is a source that only counts how often it was to hurry.
type unhurried struct {
	source
	hurries int
}

func (u *unhurried) Hurry() { u.hurries++ }

func newCPUOutput(o *Options, table *process.Table, fs procfs.FS) cpuOutput {
	c, limits := &counts{}, newBudgets(&o.Limits)
	e := cpuOutput{newOutput(o, c, table, fs, limits), newStream(o, profile.KindCPU, &unhurried{}, &c.users, limits.memory)}
	e.pending[profile.KindCPU] = e.cpu.pending
	return e
}

func testOutput(change func(*Options)) (cpuOutput, *recorder) {
	o, out := testOptions(change)
	return newCPUOutput(o, nil, procfs.FS{}), out
}

// fill adds samples of a user, of a process of its own, with one label.
func fill(b *batch, uid uint32, samples int, value string) {
	set := labels.NewSet(false, labels.Label{Key: "key-" + value, Value: value, Source: record.ABIV1})
	for i := range samples {
		b.add(b.user(uid), &profile.Sample{
			Process: uint64(uid), TimeUnixNano: b.startMono + b.clockOffset, UserFrames: []uint64{uint64(uid)<<32 + uint64(i)}, Set: set,
		})
	}
}

// What is handed over of an interval in several batches begins at one time, and each profile at one of its own: backends
// keep one of several profiles of equal labels and time.
func TestProfilesBeginApart(t *testing.T) {
	for name, perUser := range map[string]bool{"together": false, "per user": true} {
		t.Run(name, func(t *testing.T) {
			e, out := testOutput(func(o *Options) { o.Batches.PerUser = perUser })
			b := e.newBatch(e.cpu)
			fill(b, 10, 5, "ten")
			fill(b, 20, 3, "twenty")
			fill(b, 30, 1, "thirty")
			early := b.split()
			e.export(early)
			e.export(b)
			require.Equal(t, b.startMono, early.startMono)
			begun := map[uint64]bool{}
			for _, call := range out.calls {
				for _, start := range call.starts {
					require.False(t, begun[start])
					begun[start] = true
				}
			}
			require.Len(t, begun, 3)
		})
	}
}

// What comes of a user after it has handed over early begins then, also in one batch with others.
func TestProfilesBehindAnEarlyBatch(t *testing.T) {
	const before = 300_000 // ns, by which a profile may begin before
	e, out := testOutput(func(*Options) {})
	b := e.newBatch(e.cpu)
	b.startMono -= uint64(time.Second)
	fill(b, 10, 5, "ten")
	e.export(b.split())
	split := b.splits[10] + b.clockOffset
	b.add(b.user(10), &profile.Sample{Process: 10, TimeUnixNano: split + 1, UserFrames: []uint64{1}})
	fill(b, 20, 1, "twenty")
	e.export(b)
	require.Len(t, out.calls, 2)
	starts := out.calls[1].starts
	require.Len(t, starts, 2)
	require.InDelta(t, split, starts[0], before)
	require.InDelta(t, b.startMono+b.clockOffset, starts[1], before)
}

// With batch_per_user each user has a batch of its own, which says whose it is and has
// nothing of the others; a refusal costs the one user only.
func TestBatchPerUser(t *testing.T) {
	e, out := testOutput(func(o *Options) { o.Batches.PerUser = true })
	out.refuse = 30
	b := e.newBatch(e.cpu)
	b.endMono = b.startMono + 1
	fill(b, 20, 3, "twenty")
	fill(b, 10, 2, "ten")
	fill(b, 30, 5, "thirty")
	e.export(b)
	require.Len(t, out.calls, 2)
	for i, want := range []struct {
		uid         int64
		user        string
		samples     int
		has, hasNot string
	}{{10, "10", 2, "ten", "twenty"}, {20, "20", 3, "twenty", "key-ten"}} {
		got := out.calls[i]
		require.Equal(t, []string{want.user}, got.users)
		require.Equal(t, want.uid, got.uid)
		require.Equal(t, want.samples, got.samples)
		require.True(t, bytes.Contains(got.text, []byte(want.has)))
		require.False(t, bytes.Contains(got.text, []byte(want.hasNot)))
	}
	require.EqualValues(t, 5, e.cpu.emitted.Load())
	require.EqualValues(t, 5, e.cpu.dropped[DropRefused].Load())

	e, out = testOutput(func(*Options) {})
	b = e.newBatch(e.cpu)
	fill(b, 20, 3, "twenty")
	fill(b, 10, 2, "ten")
	e.export(b)
	require.Len(t, out.calls, 1)
	require.Nil(t, out.calls[0].users)
	require.Equal(t, 5, out.calls[0].samples)
}

// The user who has most of a full batch hands over early, and cannot take all the room
// of those that wait: that of the others remains.
func TestEarlyHandOver(t *testing.T) {
	e, _ := testOutput(func(o *Options) { o.Batches.MaxPending = 4 })
	b := e.newBatch(e.cpu)
	fill(b, 20, 10, "small")
	for range 3 {
		fill(b, 10, 1000, "large")
		before := b.bytes
		early := b.split()
		require.Len(t, early.users, 1)
		require.Contains(t, early.users, uint32(10))
		require.Equal(t, before, b.bytes+early.bytes)
		e.enqueue(early)
	}
	require.Len(t, e.cpu.pending, 2)
	require.EqualValues(t, 1000, e.cpu.dropped[DropPendingFull].Load())
	require.EqualValues(t, 1000, e.cpu.byUser.dropped[e.counts.users.of(10)].Load())
	fill(b, 10, 1, "large")
	require.Greater(t, b.users[10].startMono, b.startMono)
	e.enqueue(b)
	require.Len(t, e.cpu.pending, 3)
	require.Equal(t, 11, b.samples())
}

// A batch that many users have filled is handed over for one of them at a time, too, no less than what has filled it.
func TestEarlyHandOverOfMany(t *testing.T) {
	const users = 2 * maxSplitUsers
	d, _ := testAggregator(t, func(*Options) {}, nil)
	for uid := range uint32(users) {
		fill(d.batch, uid, 1, "many")
	}
	d.maxBytes = d.batch.bytes + 1
	for n := range 20 {
		b := d.batch
		last := uint32(100 * n % users)
		fill(b, last, 20, "larger")
		d.handOverAt(0)
		require.True(t, b == d.batch, "the others' samples stay")
		early := <-d.stream.pending
		require.True(t, early.early)
		require.Len(t, early.users, 1)
		require.Contains(t, early.users, last)
		require.Len(t, b.users, users-1)
		require.Less(t, b.bytes, d.maxBytes)
		require.Empty(t, d.stream.pending)
		d.output.recycle(early)
		fill(b, last, 1, "many")
	}
}

// Who has little is spared when memory has run out, unless there are many.
func TestSparedUsers(t *testing.T) {
	e, _ := testOutput(func(*Options) {})
	b := e.newBatch(e.cpu)
	fill(b, 10, 1000, "large")
	fill(b, 20, 1, "small")
	require.False(t, b.spares(10))
	require.True(t, b.spares(20))
	require.True(t, b.spares(30))
	for uid := range uint32(sparedUsers) {
		fill(b, 100+uid, 1, "many")
	}
	require.False(t, b.spares(20))
}

// A batch of many users, of each of whom little was sampled, is not full where memory is short: to hand
// over what one of them has would make no room.
func TestFullByManyUsers(t *testing.T) {
	e, _ := testOutput(func(*Options) {})
	b := e.newBatch(e.cpu)
	const users = 200
	for uid := range uint32(users) {
		fill(b, uid, 1, "few")
	}
	most, sampled := b.bytes, b.bytes-users*userBatchBytes
	require.Greater(t, userBatchBytes*users, sampled)
	require.False(t, b.full(most+1, sampled+1))
	require.True(t, b.full(most+1, sampled))
	require.True(t, b.full(most, most))
}

// What is emptied is used again, by the same user first, and not kept without bound.
func TestPartPool(t *testing.T) {
	e, _ := testOutput(func(*Options) {})
	b := e.newBatch(e.cpu)
	for uid := range uint32(2 * maxPooled) {
		fill(b, uid, 2, "pool")
	}
	last := b.users[3]
	e.cpu.pool.give(last)
	require.Zero(t, last.builder.Samples())
	require.Same(t, last, e.cpu.pool.take(3))
	e.recycle(b)
	require.Len(t, e.cpu.pool.unused, maxPooled)
	for range maxPooled {
		e.cpu.pool.take(e.cpu.pool.unused[0].uid)
	}
	require.Zero(t, e.cpu.pool.bytes)
}

// Samples of one user that wait for names leave room for those of another.
func TestAwaitingOfOneUser(t *testing.T) {
	var a awaiting
	rec := &bpf.Record{UID: 10, Labels: make([]byte, 4096)}
	for a.add(nil, rec, timeOff{}, true) {
	}
	require.LessOrEqual(t, a.bytes, maxUserAwaitingBytes)
	rec.UID = 20
	require.True(t, a.add(nil, rec, timeOff{}, true))
	for _, s := range a.samples {
		a.forget(s.record.UID, s.bytes)
	}
	require.Empty(t, a.byUser)
}
