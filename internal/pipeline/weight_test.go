//go:build linux && (amd64 || arm64)

package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
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
