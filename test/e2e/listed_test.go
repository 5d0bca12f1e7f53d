//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	listedTests  = regexp.MustCompile(`(?m)^(E2E|BENCH)_TESTS_([a-z-]+) := .*$`)
	anyTest      = regexp.MustCompile(`\bTest\w+`)
)

// TestListed: the Makefile runs each test of this package, and test/README.md has a row
// for each name that the Makefile knows.
func TestListed(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repositoryRoot, "Makefile"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "test", "README.md"))
	require.NoError(t, err)
	// A virtual machine with an old kernel runs it.
	listed := []string{"TestKernelLacks"}
	for _, name := range anyTest.FindAll(makefile, -1) {
		listed = append(listed, string(name))
	}
	sources, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	n := 0
	for _, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			assert.True(t, slices.Contains(listed, string(m[1])), "no make target runs %s of %s", m[1], source)
			n++
		}
	}
	require.NotZero(t, n)
	names := 0
	for _, m := range listedTests.FindAllSubmatch(makefile, -1) {
		name := map[string]string{"E2E": "e2e-", "BENCH": "bench-"}[string(m[1])] + string(m[2])
		require.Contains(t, string(page), "`"+name+"`", "test/README.md has no row for it")
		names++
	}
	require.NotZero(t, names)
	fmt.Printf("%d tests are run by %d targets, each with a row in test/README.md\n", n, names)
}
