package unwind_test

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/unwind"
)

// told makes a table, and returns all that was said to be held meanwhile.
func told(t *testing.T, b []byte) (all []unwind.Held, made *unwind.Table) {
	t.Helper()
	made, err := compile(b, unwind.Limits{Hold: func(h unwind.Held) error {
		all = append(all, h)
		return nil
	}})
	require.NoError(t, err)
	return all, made
}

// most is the most of what was held at a time.
func most(all []unwind.Held) (m unwind.Held) {
	for _, h := range all {
		m.Heap, m.Mapped = max(m.Heap, h.Heap), max(m.Mapped, h.Mapped)
	}
	return m
}

// manyFunctions has one more description than others of the same function, and more entries that
// these could refer to.
func manyFunctions(functions, cies int) []byte {
	m := newImage(64)
	for range cies {
		m.cie("", nil, usual)
	}
	of := m.cie("", nil, usual)
	for range functions {
		m.fde(of, 0, 8, false)
	}
	return m.bytes()
}

// What is held is told: the lists, what is made of them, and what it takes to follow code. A small
// file takes little.
func TestHold(t *testing.T) {
	small, _ := told(t, manyFunctions(1, 0))
	require.Positive(t, most(small).Mapped)
	require.Less(t, most(small).Heap+most(small).Mapped, 1<<20)

	const functions, cies = 100_000, 5_000
	const spanBytes, rowBytes, cieBytes = 16, 4, 64
	large, _ := told(t, manyFunctions(functions, cies))
	require.Greater(t, most(large).Mapped, functions*(spanBytes+rowBytes)+functions*3*rowBytes, "the lists, and the table")
	require.Less(t, most(large).Mapped, 2*functions*(spanBytes+4*rowBytes))
	require.Greater(t, most(large).Heap, cies*cieBytes)
	require.Greater(t, len(large), 10, "as they grow")
	for i := range len(large) - 1 {
		require.Less(t, large[i+1].Mapped-large[i].Mapped, functions*4*rowBytes)
	}

	program, err := os.ReadFile(muslProgram(t))
	require.NoError(t, err)
	code, made := told(t, program)
	require.GreaterOrEqual(t, most(code).Heap, unwind.CodeHeldBytes*made.Stats.CodeBytes)
	require.Less(t, code[len(code)-1].Heap, made.Stats.CodeBytes, "it is over")
	require.Equal(t, made.Bytes(), made.Held().Heap+made.Held().Mapped)
	require.Less(t, made.Held().Mapped, most(code).Mapped)
}

// Whenever it is refused, that ends New.
func TestHoldRefused(t *testing.T) {
	refused := errors.New("refused")
	program, err := os.ReadFile(muslProgram(t))
	require.NoError(t, err)
	debug := newImage(64)
	debug.debug = true
	for name, b := range map[string][]byte{
		"code": program, "lists": manyFunctions(100_000, 5_000), "debug information": debug.functions(function{16, 32, 16}).bytes(),
	} {
		all, _ := told(t, b)
		require.NotEmpty(t, all)
		for at := range all {
			calls := 0
			made, err := compile(b, unwind.Limits{Hold: func(unwind.Held) error {
				if calls++; calls > at {
					return refused
				}
				return nil
			}})
			require.Equal(t, refused, err, "%s, %d", name, at)
			require.Nil(t, made)
			require.Equal(t, at+1, calls, "%s: nothing more is asked for", name)
		}
	}
}
