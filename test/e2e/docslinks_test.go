//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	localLink = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInSlug = regexp.MustCompile("[^a-z0-9 _-]")
)

// TestDocsLinks follows the links of README.md and docs to files and headings of the
// repository.
func TestDocsLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "*.md"))
	require.NoError(t, err)
	n := 0
	for _, page := range append(pages, filepath.Join(repositoryRoot, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range localLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s: %s", page, m[1])
			if anchor != "" {
				require.Contains(t, anchors(t, target), anchor, "%s: %s", page, m[1])
			}
			n++
		}
	}
	fmt.Printf("%d links lead to a file or heading\n", n)
	require.NotZero(t, n)
}

// anchors are the names of a page's headings in links.
func anchors(t *testing.T, page string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(slug, " ", "-"))
	}
	return names
}
