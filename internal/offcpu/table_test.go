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
	table.Leave(10, 1, 100, record)
	record[0] = 'X'
	table.Leave(20, 2, 101, []byte("two"))
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
	table.Leave(10, 1, 100, []byte("one"))
	table.Leave(10, 1, 200, []byte("two"))
	require.Equal(t, Counts{ReturnLost: 1}, table.Counts())
	_, ok := table.Return(1, 100)
	require.False(t, ok)
	got, ok := table.Return(1, 200)
	require.True(t, ok)
	require.Equal(t, "two", string(got))
}

// When there is no room, those of a user go that left first.
func TestEvict(t *testing.T) {
	const record, room = 1000, userBytes + 10*(entryBytes+1024)
	table := NewTable(room)
	for thread := range uint32(100) {
		table.Leave(10, thread, uint64(thread), bytes.Repeat([]byte{byte(thread)}, record))
		require.LessOrEqual(t, table.Bytes(), room)
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
	table.Leave(10, 1, 1, make([]byte, 1<<20))
	require.Zero(t, table.Len())
	require.Zero(t, table.Bytes())
	require.Equal(t, Counts{Evicted: 91}, table.Counts())
}

// Who has most gives way, whoever left first, and whoever leaves now.
func TestEvictOfUser(t *testing.T) {
	const record = 1000
	table := NewTable(3*userBytes + 10*(entryBytes+1024))
	leave := func(uid, thread uint32) { table.Leave(uid, thread, uint64(thread), make([]byte, record)) }
	leave(10, 1)
	leave(20, 2)
	for thread := uint32(100); thread < 200; thread++ {
		leave(30, thread)
	}
	leave(10, 3)
	require.Equal(t, 2*(entryBytes+1024), table.UserBytes(10))
	require.Equal(t, entryBytes+1024, table.UserBytes(20))
	require.Equal(t, 7*(entryBytes+1024), table.UserBytes(30))
	require.Zero(t, table.UserBytes(40))
	for _, thread := range []uint32{1, 2, 3, 193, 199} {
		_, ok := table.Return(thread, uint64(thread))
		require.True(t, ok, thread)
	}
	_, ok := table.Return(192, 192)
	require.False(t, ok)
	require.Zero(t, table.UserBytes(10))

	// Now another has most.
	for thread := uint32(200); thread < 220; thread++ {
		leave(20, thread)
	}
	for thread := uint32(194); thread < 199; thread++ {
		_, ok := table.Return(thread, uint64(thread))
		require.True(t, ok, thread)
	}
}

// Users without threads that are off the CPU take no memory, however many there were.
func TestManyUsers(t *testing.T) {
	const room = 1 << 20
	table := NewTable(room)
	for uid := range uint32(10_000) {
		table.Leave(uid, uid, 1, make([]byte, 100))
		require.LessOrEqual(t, table.Bytes(), room)
	}
	require.NotZero(t, table.Counts().Evicted)
	require.Equal(t, table.Len(), len(table.users.byUID))
	require.Equal(t, table.Len(), len(table.users.order))
	for thread := range uint32(10_000) {
		table.Return(thread, 1)
	}
	require.Empty(t, table.users.byUID)
	require.Empty(t, table.users.order)
	require.Len(t, table.users.unused, maxUnused)
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
			table.Leave(random.Uint32N(5), thread, now, []byte(text))
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
		held, most := 0, 0
		for _, of := range table.users.order {
			bytes := 0
			for e := of.first; e != nil; e = e.next {
				bytes += e.size()
			}
			require.Equal(t, bytes, of.bytes)
			held += userBytes + bytes
			most = max(most, bytes)
		}
		if most > 0 {
			require.Equal(t, most, table.users.order[0].bytes)
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

// A record does not take the memory of a larger one that was there before.
func TestRecordsOfSizes(t *testing.T) {
	const small, threads = 400, 100
	table := NewTable(1 << 20)
	for thread := range uint32(threads) {
		table.Leave(20, threads, 1, make([]byte, freeRecordBytes))
		_, ok := table.Return(threads, 1)
		require.True(t, ok)
		table.Leave(10, thread, 1, make([]byte, small))
	}
	require.LessOrEqual(t, table.UserBytes(10), threads*(entryBytes+maxSpare*small))
}

// What is kept to be used again can be given up.
func TestForgetFree(t *testing.T) {
	table := NewTable(1 << 20)
	for thread := range uint32(10) {
		table.Leave(10, thread, 1, make([]byte, 100))
	}
	for thread := range uint32(9) {
		table.Return(thread, 1)
	}
	require.Greater(t, table.Bytes(), 10*100)
	table.ForgetFree()
	require.Less(t, table.Bytes(), 2*(entryBytes+100)+userBytes)
	_, ok := table.Return(9, 1)
	require.True(t, ok)
}

// Threads that come and go cost no memory.
func TestNoAllocations(t *testing.T) {
	table := NewTable(1 << 20)
	record := make([]byte, 700)
	now := uint64(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now++
		table.Leave(10, 7, now, record)
		table.Leave(20, 8, now, record)
		table.Return(7, now)
		table.Return(8, now)
	}))
}
