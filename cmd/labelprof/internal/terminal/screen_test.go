// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFit(t *testing.T) {
	for rows, want := range []string{"a\n", "a\n", "a\n", "a\nb…\n", "a\nb…\nc", "a\nb…\nc"} {
		require.Equal(t, want, string(Screen{rows, 2}.Fit([]byte("a\nb12\nc"))), "%d rows", rows)
	}
	require.Equal(t, "äöü\n", string(Screen{24, 3}.Fit([]byte("äöü\n"))))
}

// What is no terminal has no size, whatever the environment says.
func TestNoTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	file, err := os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	defer file.Close()
	require.Zero(t, Of(file))
	require.Zero(t, Of(&bytes.Buffer{}))
	require.False(t, Screen{}.Redraws())
}

func TestGrid(t *testing.T) {
	g := &Grid{Left: 2, Columns: 30}
	g.Add("key", "other", "n")
	g.Add("a-long-value-of-a-label", "ok", "12345")
	var b bytes.Buffer
	g.Render(&b)
	require.Equal(t, "  key             other      n\n  a-long-value-…  ok     12345\n", b.String())
	g.Columns = 5 // no room at all: numbers stay
	b.Reset()
	g.Render(&b)
	require.Contains(t, b.String(), "  a-long-…  ok     12345\n")
}

// TestWidth: what takes two columns, or none, counts so, and is not cut in half.
func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "äöü": 3, "租户": 4, "🚀": 2, "ｗ": 2, "ｱ": 1, "e\u0301": 1, "…": 1} {
		require.Equal(t, want, Width(text), text)
	}
	for columns, want := range map[int]string{1: "…", 2: "…", 3: "租…", 4: "租…", 5: "租户…", 6: "租户名"} {
		require.Equal(t, want, Shorten("租户名", columns), columns)
	}
	require.Equal(t, "e\u0301…", Shorten("e\u0301tat", 2))
	g := &Grid{Left: 1}
	g.Add("租户", "1")
	g.Add("a", "2")
	var b bytes.Buffer
	g.Render(&b)
	require.Equal(t, "  租户  1\n  a     2\n", b.String())
	require.Equal(t, "租…\n", string(Screen{24, 4}.Fit([]byte("租户名\n"))))
}
