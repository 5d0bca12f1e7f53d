//go:build linux && (amd64 || arm64)

package writercheck

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// goRules are those for the labels of goroutines. A writer breaks the first by how it was built.
func goRules() []string { return []string{ruleFound, ruleSet, ruleSchema} }

// Go keeps its labels where readers can read them. A program that breaks a rule for them goes past
// runtime/pprof, publishes the process context of another format, or is built so that nothing tells
// where they are.
func TestOneRuleBrokenInGo(t *testing.T) {
	dir := t.TempDir()
	built := func(name string, flags ...string) string {
		path := filepath.Join(dir, name)
		args := append([]string{"build", "-buildvcs=false", "-o", path}, flags...)
		out, err := exec.Command("go", append(args, "./"+sources+"golabels")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return path
	}
	writer, stripped := built("writer"), built("stripped", "-ldflags=-s -w")
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		ids, r := publishing(t, started(t, writer))
		require.Empty(t, ids)
		require.Positive(t, r.Reads.Published)
	})
	for _, rule := range goRules() {
		t.Run(Go.rule(rule), func(t *testing.T) {
			t.Parallel()
			path := writer
			if rule == ruleFound {
				path = stripped
			}
			ids, r := broken(t, started(t, path, rule))
			require.Equal(t, []string{Go.rule(rule)}, ids, "%+v", r.Reads)
		})
	}
}
