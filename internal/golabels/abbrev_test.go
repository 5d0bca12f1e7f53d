package golabels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// turns are units of DWARF 4, one with the table at offset 0, the next with that at another one.
type turns struct {
	other uint32
	units int
	buf   []byte
}

func (u *turns) Read(p []byte) (int, error) {
	if len(u.buf) == 0 {
		b := binary.LittleEndian.AppendUint32(nil, 8)
		b = binary.LittleEndian.AppendUint16(b, 4)
		b = binary.LittleEndian.AppendUint32(b, u.other*uint32(u.units%2))
		u.buf = append(b, wordBytes, 0) // no entry
		u.units++
	}
	n := copy(p, u.buf)
	u.buf = u.buf[n:]
	return n, nil
}

// tables are two tables of so many bytes each.
func tables(bytesEach int) []byte {
	table := bytes.Repeat([]byte{1, tagMember, 0, 0, 0}, (bytesEach-1)/5)
	table = append(table, make([]byte, bytesEach-len(table))...) // it ends at the first 0
	return append(table, table...)
}

// Units that take turns with tables have few of them read, large or small.
func TestTables(t *testing.T) {
	for _, bytesEach := range []int{1, 100, 1 << 20} {
		table := tableOf(tables(bytesEach))
		u := &turns{other: uint32(bytesEach)}
		require.ErrorIs(t, newTypes().search(io.LimitReader(u, maxInfoBytes), table), errTables, bytesEach)
		require.LessOrEqual(t, u.units, maxTableBytes/tableBytes+1)
		require.LessOrEqual(t, u.units*(bytesEach-5), maxTableBytes+2*bytesEach)
	}
	u := &turns{}
	require.ErrorIs(t, newTypes().search(io.LimitReader(u, 12*1_000_000), tableOf(tables(100))), errNoTypes, "one table for all")
}

// The reading of tables ends when it takes too much time.
func TestTablesAreWork(t *testing.T) {
	enough := errors.New("enough")
	told := 0
	table := &abbrevTable{data: tables(1000), work: func(n int) error {
		if told += n; told > 1<<20 {
			return enough
		}
		return nil
	}}
	require.ErrorIs(t, newTypes().search(&turns{other: 1000}, table), enough)
	require.Less(t, told, 1<<20+2000)
}

// A program whose units have too many tables is read by its release, which is told.
func TestTablesOfProgram(t *testing.T) {
	data, f := program(t, "gowriter-static")
	before, err := planOf(data)
	require.NoError(t, err)
	require.True(t, before.FromDWARF)
	require.False(t, before.Limited)
	const each = 1 << 20
	info := make([]byte, 12*2*maxTableBytes/each)
	_, err = io.ReadFull(&turns{other: each}, info)
	require.NoError(t, err)
	after, err := planOf(withDebug(t, data, f, tables(each), info, false))
	require.NoError(t, err)
	require.True(t, after.Limited)
	require.False(t, after.FromDWARF)
	require.Equal(t, before.Layout, after.Layout)
}
