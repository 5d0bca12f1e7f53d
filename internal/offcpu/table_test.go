package offcpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReturn(t *testing.T) {
	table := NewTable(1 << 20)
	record := []byte("one")
	table.Leave(1, 100, record)
	record[0] = 'X'
	table.Leave(2, 101, []byte("two"))
	require.Equal(t, 2, table.Len())

	_, ok := table.Return(3, 100)
	require.False(t, ok, "never left")
	_, ok = table.Return(1, 99)
	require.False(t, ok, "left at another time")
	got, ok := table.Return(1, 100)
	require.True(t, ok)
	require.Equal(t, "one", string(got))
	_, ok = table.Return(1, 100)
	require.False(t, ok, "returned already")
	got, ok = table.Return(2, 101)
	require.True(t, ok)
	require.Equal(t, "two", string(got))
	require.Zero(t, table.Len())
	require.Zero(t, table.Counts())
}

// A thread that leaves again has returned in between.
func TestReturnLost(t *testing.T) {
	table := NewTable(1 << 20)
	table.Leave(1, 100, []byte("one"))
	table.Leave(1, 200, []byte("two"))
	require.Equal(t, Counts{ReturnLost: 1}, table.Counts())
	_, ok := table.Return(1, 100)
	require.False(t, ok)
	got, ok := table.Return(1, 200)
	require.True(t, ok)
	require.Equal(t, "two", string(got))
}

// When there is no room, those go that left first.
func TestEvict(t *testing.T) {
	const record = 1000
	table := NewTable(10 * (entryBytes + 1024))
	for thread := range uint32(100) {
		table.Leave(thread, uint64(thread), bytes.Repeat([]byte{byte(thread)}, record))
		require.LessOrEqual(t, table.Bytes(), 10*(entryBytes+1024))
	}
	require.Equal(t, 10, table.Len())
	require.Equal(t, Counts{Evicted: 90}, table.Counts())
	_, ok := table.Return(89, 89)
	require.False(t, ok)
	for thread := uint32(90); thread < 100; thread++ {
		got, ok := table.Return(thread, uint64(thread))
		require.True(t, ok)
		require.Equal(t, bytes.Repeat([]byte{byte(thread)}, record), got)
	}

	// One that is larger than all the room is not kept.
	table.Leave(1, 1, make([]byte, 1<<20))
	require.Zero(t, table.Len())
	require.Zero(t, table.Bytes())
	require.Equal(t, Counts{Evicted: 91}, table.Counts())
}

// Against a simple model: what comes back is what was left, and the bytes are those of what is held.
func TestModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const maxBytes = 64 << 10
	table := NewTable(maxBytes)
	left := map[uint32]string{}
	var leaves, returns uint64
	for now := range uint64(200_000) {
		thread := random.Uint32N(200)
		if random.IntN(2) == 0 {
			text := fmt.Sprintf("%d-%d-%s", thread, now, bytes.Repeat([]byte{'x'}, random.IntN(6000)))
			table.Leave(thread, now, []byte(text))
			left[thread] = text
			leaves++
		} else if text := left[thread]; text != "" {
			var at uint64
			_, err := fmt.Sscanf(text, fmt.Sprintf("%d-%%d-", thread), &at)
			require.NoError(t, err)
			if got, ok := table.Return(thread, at); ok {
				returns++
				require.Equal(t, text, string(got))
			}
			delete(left, thread)
		}
		require.LessOrEqual(t, table.Bytes(), maxBytes)
		held := 0
		for e := table.first; e != nil; e = e.next {
			held += e.size()
		}
		for e := table.free; e != nil; e = e.next {
			held += e.size()
		}
		require.Equal(t, held, table.Bytes())
		c := table.Counts()
		require.Equal(t, leaves, returns+c.Evicted+c.ReturnLost+uint64(table.Len()))
	}
	c := table.Counts()
	require.NotZero(t, c.Evicted)
	require.NotZero(t, c.ReturnLost)
}

// Threads that come and go cost no memory.
func TestNoAllocations(t *testing.T) {
	table := NewTable(1 << 20)
	record := make([]byte, 700)
	now := uint64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now++
		table.Leave(7, now, record)
		table.Leave(8, now, record)
		table.Return(7, now)
		table.Return(8, now)
	}))
}
