package unwind_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// slowGoTable has all functions of a Go program share one table of frame sizes, which gets
// nowhere.
func slowGoTable(t *testing.T, data []byte) {
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	s := f.Section(".gopclntab")
	require.NotNil(t, s)
	table := data[s.Offset : s.Offset+s.Size]
	// runtime.pcHeader: number of functions, ..., pctab, and the table of functions behind it.
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(table[8+8*i:]) }
	functions, values, code := word(0), word(6), word(7)
	pcs := table[values+1 : code]
	copy(pcs, bytes.Repeat([]byte{2, 0, 1, 0}, len(pcs)/4))
	for i := range functions {
		// runtime.functab: entry, offset of runtime._func, which has the offset of frame sizes at 16.
		at := code + uint64(binary.LittleEndian.Uint32(table[code+8*i+4:]))
		binary.LittleEndian.PutUint32(table[at+16:], 1)
	}
}

// To go through the functions of a Go program is work, which ends when there has been too much of it.
func TestGoWork(t *testing.T) {
	paths := testutil.BuildGoTables(t)
	data, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	functions := func(pace func() error) int {
		e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		e.Pace(pace)
		made, err := unwind.New(e, unwind.Limits{})
		require.NoError(t, err)
		defer made.Close()
		return made.Stats.GoFunctions
	}
	all := functions(func() error { return nil })
	some := functions(func() error { return errors.New("too much") })
	require.NotZero(t, some)
	require.Less(t, some, all)
}

// So is to follow code that nothing describes.
func TestCodeWork(t *testing.T) {
	data, err := os.ReadFile(muslProgram(t))
	require.NoError(t, err)
	fromCode := func(enough int) (functions, calls int) {
		e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		e.Pace(func() error {
			if calls++; calls == enough {
				return errors.New("too much")
			}
			return nil
		})
		made, err := unwind.New(e, unwind.Limits{})
		if err != nil {
			return 0, calls
		}
		defer made.Close()
		return made.Stats.FromCode, calls
	}
	functions, calls := fromCode(0)
	require.NotZero(t, functions)
	require.Greater(t, calls, 2*len(data)>>16, "more than to read all of it")
	functions, _ = fromCode(calls)
	require.Zero(t, functions)
}

// A Go program whose tables take too many steps has no rows, and says why.
func TestGoSteps(t *testing.T) {
	for _, path := range testutil.BuildGoTables(t) {
		if filepath.Base(path) != "tables-static" {
			continue
		}
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		slowGoTable(t, data)
		e, err := elffile.New(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		_, err = unwind.New(e, unwind.Limits{})
		require.ErrorIs(t, err, unwind.ErrLimit)
		require.ErrorContains(t, err, "steps through pclntab")
		return
	}
	require.Fail(t, "no program")
}
