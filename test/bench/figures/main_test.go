package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/test/bench/paired"
)

// measured has a benchmark run with package paired, as those do that are measured.
func measured(t *testing.T, dir, name string, rounds int, ratio float64) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		r := paired.Start(t, dir, name)
		n := 0.0
		s := r.Rounds("a | b", rounds, []string{"ours", "theirs"}, func(subject string) paired.Figures {
			n++
			if subject == "ours" {
				return paired.Figures{"ms": ratio * 100, "only ours": n}
			}
			return paired.Figures{"ms": 100}
		})
		r.Judge(paired.Claim{What: "time", Values: s.Ratios("ours", "theirs", "ms"), Goal: 1})
	})
}

// The page has the figures and verdicts of the last run of each benchmark that came to some.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "page.md")
	text := func() string {
		require.NoError(t, write(dir, page))
		b, err := os.ReadFile(page)
		require.NoError(t, err)
		return string(b)
	}
	measured(t, dir, "fast", 10, 0.5)
	measured(t, dir, "quick", 1, 0.5)
	first := text()
	require.Contains(t, first, "\n## fast\n")
	require.Contains(t, first, "| time | 0.5 | 0.5 to 0.5 (97.9 %) | 1 | met |")
	require.Contains(t, first, `| a \| b | ours | theirs |`)
	require.Contains(t, first, "| ms | 50 (50–50) | 100 (100–100) |")
	require.Contains(t, first, "; 10 rounds.*")
	require.NotContains(t, first, "quick", "it has no verdict")
	require.Equal(t, first, text(), "nothing is new")

	// What is not measured again stays.
	old, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	measured(t, dir, "another", 10, 0.25)
	require.Equal(t, strings.Replace(text(), section(t, text(), "another"), "", 1), first)
}

// section returns one of a page with its heading.
func section(t *testing.T, page, name string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, fmt.Sprintf("\n## %s\n", name))
	require.True(t, ok)
	rest, _, _ = strings.Cut(rest, "\n## ")
	return fmt.Sprintf("\n## %s\n", name) + rest
}
