//go:build linux && (amd64 || arm64)

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A docBlock is a fenced block of a page, or the commands in the comment at the head of
// an example.
type docBlock struct {
	page     string // path from the root of the repository
	line     int
	language string
	file     string // that its first line names in a comment; "" if none
	text     string
}

var (
	fence      = regexp.MustCompile("^\\s*```(\\S*)\\s*$")
	namesFile  = regexp.MustCompile(`^(?:/\*|//|#)\s*([\w./-]+\.\w+)\s*(?:\*/)?$`)
	inComment  = regexp.MustCompile(`^#   (\s*\S.*)$`)
	noCommand  = regexp.MustCompile(`^(?:#.*|for .*; do|done|case .* in|\S+\) .*;;|esac|)$`)
	ofThisRepo = []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "examples/*.yaml", "deploy/*", "deploy/*/*"}
)

// docBlocks lists what the pages, the examples and deploy/ tell people to run or to write.
func docBlocks(t *testing.T, root string) (blocks []docBlock) {
	t.Helper()
	for _, pattern := range ofThisRepo {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, names, pattern)
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || info.IsDir() {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			page, err := filepath.Rel(root, name)
			require.NoError(t, err)
			if filepath.Ext(name) == ".md" {
				blocks = append(blocks, fencedBlocks(t, page, string(text))...)
			} else {
				blocks = append(blocks, commentedCommands(page, string(text))...)
			}
		}
	}
	return blocks
}

func fencedBlocks(t *testing.T, page, text string) (blocks []docBlock) {
	t.Helper()
	var open *docBlock
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case m == nil && open != nil:
			open.text += line + "\n"
		case m != nil && open == nil:
			open = &docBlock{page: page, line: i + 1, language: m[1]}
		case m != nil:
			require.Empty(t, m[1], "%s:%d: a fence within a block", page, i+1)
			first, _, _ := strings.Cut(open.text, "\n")
			if name := namesFile.FindStringSubmatch(first); name != nil {
				open.file = name[1]
			}
			blocks = append(blocks, *open)
			open = nil
		}
	}
	require.Nil(t, open, "%s: a fence is not closed", page)
	return blocks
}

// commentedCommands are the lines of the comment at the head of a file that are indented.
func commentedCommands(page, text string) []docBlock {
	b := docBlock{page: page, language: "sh", line: 1}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		if m := inComment.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			b.text += m[1] + "\n"
		}
	}
	if b.text == "" {
		return nil
	}
	return []docBlock{b}
}

// commandLines are the lines of a shell script, those that go on joined to one.
func commandLines(script string) (lines []string) {
	for line := range strings.Lines(strings.ReplaceAll(script, "\\\n", " ")) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}
