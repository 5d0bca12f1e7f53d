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

// readmeBytes is what README.md may have at most: it is for a first look.
const readmeBytes = 10 << 10

// TestDocsLinks follows the links of README.md, docs and the other pages to files and
// headings of the repository.
func TestDocsLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "*.md"))
	require.NoError(t, err)
	for _, name := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "receiver/customlabelsreceiver/README.md", "test/README.md"} {
		pages = append(pages, filepath.Join(repositoryRoot, name))
	}
	n := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		if page == filepath.Join(repositoryRoot, "README.md") {
			require.LessOrEqual(t, len(text), readmeBytes, "README.md: move it to a page of docs")
		}
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
