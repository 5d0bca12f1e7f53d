//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// nodeWriter is how testdata/check/node.js is started so that it breaks a rule for Node.js.
type nodeWriter struct {
	rule  string   // "none": it keeps all
	node  string   // "": node24
	addon []string // arguments of the compiler for an addon with a variable of its own; nil: none
}

func (w *nodeWriter) name() string {
	if w.rule == "none" && w.addon != nil {
		return "none-addon"
	}
	return w.rule
}

// nodeWriters has each rule for Node.js. The library keeps what concerns its variable and the end of
// a record; an addon beside it does not.
func nodeWriters() []nodeWriter {
	return []nodeWriter{
		{rule: "none"},
		{rule: "none", addon: []string{}},
		{rule: "variable-exported", addon: []string{`-DVISIBILITY=__attribute__((visibility("hidden")))`}},
		{rule: "variable-thread-local", addon: []string{"-DNOT_THREAD_LOCAL"}},
		{rule: "variable-size", addon: []string{"-DPAD=char pad[8];"}},
		{rule: "tls-model", node: "node20"}, // whose V8 no reader knows
		{rule: "record-readable"},
		{rule: "ids"},
		{rule: "trace-flags"},
		{rule: "attributes-complete", addon: []string{}},
		{rule: "attributes-utf8"},
		{rule: "key-map-complete"},
		{rule: "schema"},
	}
}

// requireBrokenNode: of a writer for Node.js that breaks one rule, labelprof check finds that one.
func requireBrokenNode(t *testing.T, w *nodeWriter) {
	const format = "thread_context_nodejs/"
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	modules, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules"))
	require.NoError(t, err)
	source, node := filepath.Join(root, "testdata", "check"), w.node
	if node == "" {
		node = "node24"
	}
	args := []string{
		"check", "--seconds", publishSeconds, "--json", "--",
		filepath.Join(modules, node, "bin", "node"), filepath.Join(source, "node.js"), w.rule,
	}
	if w.addon != nil {
		addon := filepath.Join(t.TempDir(), "addon.node")
		testutil.Compile(t, addon, "gcc", append([]string{
			filepath.Join(source, "node_addon.c"), "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-mtls-dialect=gnu2",
			"-isystem", filepath.Join(modules, node, "include", "node"),
		}, w.addon...)...)
		args = append(args, addon)
	}
	cmd := exec.Command(filepath.Join(root, "bin", "labelprof"), args...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	text, err := cmd.Output()
	want := []string{format + w.rule}
	if w.rule == "none" {
		want = nil
		require.NoError(t, err)
	} else {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 1, exit.ExitCode(), "%s", exit.Stderr)
	}
	var report struct {
		Rules []struct{ ID, Verdict string }
	}
	require.NoError(t, json.Unmarshal(text, &report), "%s", text)
	var broken []string
	for _, r := range report.Rules {
		rule, ok := strings.CutPrefix(r.ID, format)
		require.True(t, !ok || slices.ContainsFunc(nodeWriters(), func(w nodeWriter) bool { return w.rule == rule }), "no writer breaks %s", r.ID)
		if r.Verdict == "broken" {
			broken = append(broken, r.ID)
		}
	}
	require.Equal(t, want, broken)
}
