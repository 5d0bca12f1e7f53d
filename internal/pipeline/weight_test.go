//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// Samples of thousands of users count in memory, though each of them has next to nothing; so do those of one who
// hands over early. All of it is given back.
func TestBatchWeight(t *testing.T) {
	d, _ := testAggregator(t, func(*Options) {}, nil)
	counted := func() int { return int(d.memory.Part(budget.OfBatches)) / 2 } // what is on Go's heap counts twice
	const users = 2000
	for uid := range uint32(users) {
		fill(d.batch, uid, 1, "few")
		d.weigh()
	}
	require.Greater(t, d.batch.bytes, users*userBatchBytes)
	require.InDelta(t, d.batch.bytes, counted(), float64(d.batch.bytes)/20)
	d.output.recycle(d.batch)
	require.Less(t, counted(), d.stream.pool.bytes+weightStep)

	d.batch = d.output.newBatch(d.stream)
	fill(d.batch, 10, 10_000, "much")
	fill(d.batch, 20, 1000, "little")
	d.weigh()
	before := counted()
	early := d.batch.split()
	require.Equal(t, before, counted())
	d.weigh()
	require.InDelta(t, before, counted(), weightStep)
	d.output.recycle(early)
	d.weigh()
	require.Less(t, counted(), d.batch.held+d.stream.pool.bytes+2*weightStep)
	require.Less(t, 2*counted(), before)
	d.output.recycle(d.batch)
	require.Less(t, counted(), d.stream.pool.bytes+weightStep)
	d.memory.Add(budget.OfProcesses, int(d.memory.Limit()))
	d.stream.pool.give(d.stream.pool.take(10))
	require.Less(t, counted(), weightStep, "nothing is kept where memory is short")
}

// accountant looks at what is counted of the output while a request is handed over.
type accountant struct {
	recorder
	memory *budget.Memory
	seen   []int64
}

func (a *accountant) ConsumeProfiles(ctx context.Context, p pprofile.Profiles) error {
	a.seen = append(a.seen, a.memory.Part(budget.OfOutput))
	return a.recorder.ConsumeProfiles(ctx, p)
}

// Of a batch, what was not handed over yet is counted, with the tables of the request at hand.
func TestOutputCounted(t *testing.T) {
	next := &accountant{recorder: recorder{refuse: -2}}
	e, _ := testOutput(func(o *Options) { o.Next.Profiles, o.Batches.MaxRequestBytes = next, 16<<10 })
	next.memory = e.memory
	b := e.newBatch(e.cpu)
	fill(b, 10, 2000, "of ten")
	least := int64(2 * b.users[10].builder.OutputBytes())
	e.export(b)
	require.Greater(t, len(next.seen), 4)
	require.Greater(t, next.seen[0], least)
	require.Less(t, next.seen[len(next.seen)-1], least)
	require.Zero(t, e.memory.Part(budget.OfOutput))
	require.EqualValues(t, 2000, e.cpu.emitted.Load())
}

// A user's samples that lack frames are counted, and nobody else's.
func TestLostFramesOfUser(t *testing.T) {
	const bound, samples, depth = 20, 50, 4
	e, out := testOutput(func(o *Options) { o.Batches.MaxUserFrames = bound })
	b := e.newBatch(e.cpu)
	for i := range uint64(samples) {
		s := profile.Sample{Process: 10, TimeUnixNano: b.startMono + b.clockOffset}
		for j := range uint64(depth) {
			s.UserFrames = append(s.UserFrames, (i*depth+j)<<8)
		}
		b.add(b.user(10), &s)
	}
	fill(b, 20, bound/2, "few")
	e.export(b)
	require.Len(t, out.calls, 1)
	lost := loaded(&e.cpu.byUser.lostFrames)
	require.EqualValues(t, samples-bound/depth, lost[e.counts.users.of(10)], fmt.Sprint(lost))
	require.Zero(t, lost[e.counts.users.of(20)])
}
