package unwind_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/elffile"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// table makes the table of a file.
func table(t testing.TB, path string) *unwind.Table {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	made, err := compile(b, unwind.Limits{})
	require.NoError(t, err)
	consistent(t, made)
	return made
}

func compile(b []byte, limits unwind.Limits) (*unwind.Table, error) {
	e, err := elffile.New(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	return unwind.New(e, limits)
}

// consistent checks what readers of a table rely on.
func consistent(t testing.TB, made *unwind.Table) {
	t.Helper()
	require.Zero(t, made.Base%record.UnwindBlockBytes)
	require.NotEmpty(t, made.Rows)
	require.Equal(t, record.UnwindRule{}, made.Rules[0])
	require.LessOrEqual(t, len(made.Rules), 1<<16)
	require.Zero(t, made.Index[0])
	require.EqualValues(t, len(made.Rows), made.Index[len(made.Index)-1])
	require.Zero(t, made.Rows[0].Offset())
	last, lastRule := uint64(0), record.UnwindRule{}
	n := 0
	made.Each(func(vaddr uint64, r record.UnwindRule) bool {
		if n > 0 && (vaddr <= last || r == lastRule) {
			t.Fatalf("row %d at %#x after %#x: %+v after %+v", n, vaddr, last, r, lastRule)
		}
		got, ok := made.Lookup(vaddr)
		if !ok || got != r || vaddr >= made.Limit() {
			t.Fatalf("at %#x: %+v, %v, not %+v", vaddr, got, ok, r)
		}
		last, lastRule, n = vaddr, r, n+1
		return true
	})
	require.Equal(t, len(made.Rows), n)
	_, ok := made.Lookup(made.Limit())
	require.False(t, ok)
	_, ok = made.Lookup(made.Base - 1)
	require.False(t, ok)
}
