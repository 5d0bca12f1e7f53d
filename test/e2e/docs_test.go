//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// A docsCount says what became of what the pages say.
type docsCount struct {
	ran, checked     int // commands
	started, valid   int // configurations
	parsed           int
	files, texts     int // programs and the like that commands need; figures and outputs
	excused          map[string]bool
	excusedFragments map[string]bool
}

// TestDocs runs every command and every configuration of README.md, CONTRIBUTING.md, docs,
// examples and deploy, page by page in their order, as people would. What cannot be run here is listed
// with its reason and checked as far as it can be; a block that is neither fails the test,
// and so does an entry of the list that no page has.
func TestDocs(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	w := testutil.Start(t, "writer-v1-lib", "spin", "--labels", "1", "--threads", "1", "--seconds", "86400")
	total := docsCount{excused: map[string]bool{}, excusedFragments: map[string]bool{}}
	places := map[string]*docsPlace{}
	for _, b := range docBlocks(t, root) {
		place := places[b.page]
		if place == nil {
			place = newDocsPlace(t, root)
			places[b.page] = place
		}
		t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
			runBlock(t, place, b, w, &total)
		})
	}
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	require.NoError(t, err)
	for _, name := range examples {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			requireVariables(t, name, string(text))
			runConfiguration(t, string(text), w)
			total.started++
		})
	}
	t.Run("agents of Pyroscope", requireAgentsOfPyroscope)
	for line := range notRun {
		require.True(t, total.excused[line], "no page has this command any more: %s", line)
	}
	for part := range notValidated {
		require.True(t, total.excusedFragments[part], "no page has this configuration any more: %s", part)
	}
	fmt.Printf("commands: %d ran, %d were checked and not run\n", total.ran, total.checked)
	for _, line := range slices.Sorted(maps.Keys(notRun)) {
		fmt.Printf("not run: %s\n         %s\n", line, notRun[line])
	}
	fmt.Printf("configurations: %d ran and samples arrived, %d parts were validated, %d parsed\n", total.started, total.valid, total.parsed)
	fmt.Printf("%d programs and other files were built with and run; %d figures and outputs\n", total.files, total.texts)
	require.NotZero(t, total.ran)
	require.NotZero(t, total.started)
}

// requireAgentsOfPyroscope: what deploy/fleet has commented out for agents whose backend is
// Pyroscope is the receiver of examples/pyroscope.yaml.
func requireAgentsOfPyroscope(t *testing.T) {
	agents, err := os.ReadFile("../../deploy/fleet/direct/agents.yaml")
	require.NoError(t, err)
	example, err := os.ReadFile("../../examples/pyroscope.yaml")
	require.NoError(t, err)
	var commented strings.Builder
	for line := range strings.Lines(string(agents)) {
		if rest, ok := strings.CutPrefix(line, "#"); ok && !strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "#  ") {
			commented.WriteString(rest)
		}
	}
	require.Equal(t, parseYAML(t, string(example)).Get("receivers"), parseYAML(t, commented.String()).Get("receivers"))
	validatePart(t, commented.String())
}

// runBlock does what a block is there for.
func runBlock(t *testing.T, place *docsPlace, b docBlock, w *testutil.Writer, total *docsCount) {
	t.Helper()
	if b.file != "" {
		place.write(t, b.file, b.text)
		total.files++
	}
	switch b.language {
	case "sh":
		ran, checked := place.run(t, b.text)
		total.ran += ran
		total.checked += len(checked)
		for _, line := range checked {
			total.excused[line] = true
		}
	case "yaml":
		runYAML(t, b.text, w, total)
	case "c", "c++", "rust", "go":
		require.NotEmpty(t, b.file, "the first line is to name the file in a comment, so that commands find it")
	case "text":
		if b.file == "" {
			total.texts++
		}
	default:
		require.Fail(t, "a block that is not known: ```"+b.language)
	}
}

// runYAML starts a whole configuration, and validates a part of one.
func runYAML(t *testing.T, text string, w *testutil.Writer, total *docsCount) {
	t.Helper()
	conf := parseYAML(t, text)
	for part := range notValidated {
		if strings.Contains(text, part) {
			total.excusedFragments[part] = true
			total.parsed++
			return
		}
	}
	keys := conf.ToStringMap()
	for key := range keys {
		require.Contains(t, []string{"receivers", "processors", "exporters", "extensions", "connectors", "service"}, key)
	}
	if keys["service"] != nil && keys["exporters"] != nil {
		runConfiguration(t, text, w)
		total.started++
		return
	}
	validatePart(t, text)
	total.valid++
}

var alertName = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)

// TestWorkflowsBuildAsImages: what is released and tested is built with the version of Go of the images.
func TestWorkflowsBuildAsImages(t *testing.T) {
	version := regexp.MustCompile(`(?m)golang:([\d.]+)-|go-version: "([\d.]+)"$`)
	seen := map[string]bool{}
	n := 0
	for _, pattern := range []string{".github/workflows/*.yml", "deploy/Dockerfile", "deploy/fleet/Dockerfile"} {
		files, err := filepath.Glob(filepath.Join(repositoryRoot, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			found := version.FindAllStringSubmatch(readText(t, file), -1)
			require.NotEmpty(t, found, file)
			for _, f := range found {
				seen[f[1]+f[2]] = true
				n++
			}
		}
	}
	require.Len(t, seen, 1)
	fmt.Printf("%d places name one version of Go: %v\n", n, seen)
}

// TestMemoryOfDeployments: what the manifests let the process take is what its parts may take together.
func TestMemoryOfDeployments(t *testing.T) {
	const rest = 64 << 20 // docs/operators.md
	config := customlabelsreceiver.NewFactory().CreateDefaultConfig().(*customlabelsreceiver.Config)
	size := regexp.MustCompile(`(?:GOMEMLIMIT(?:=|\s+value: )|MemoryMax=|limits: {memory: |--memory=)(\d+)([MGmg])`)
	n := 0
	for _, file := range []string{"deploy/systemd/otelcol-customlabels.service", "deploy/kubernetes/daemonset.yaml", "docs/operators.md"} {
		var sizes []int64
		for _, f := range size.FindAllStringSubmatch(readText(t, filepath.Join(repositoryRoot, file)), -1) {
			bytes, err := strconv.ParseInt(f[1], 10, 64)
			require.NoError(t, err)
			sizes = append(sizes, bytes<<map[string]int{"M": 20, "G": 30}[strings.ToUpper(f[2])])
		}
		require.Len(t, sizes, 2, file)
		heap, all := min(sizes[0], sizes[1]), max(sizes[0], sizes[1])
		require.GreaterOrEqual(t, all, heap+int64(config.MaxMemoryBytes)+int64(config.MaxBpfMapBytes)+rest, file)
		n++
	}
	fmt.Printf("%d limits of memory hold what the parts of the process may take\n", n)
}

// TestDocsNameCounts: what the receiver counts by reason is explained to operators, and so is
// each alert.
func TestDocsNameCounts(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	metadata, err := os.ReadFile("../../receiver/customlabelsreceiver/metadata.yaml")
	require.NoError(t, err)
	attributes, ok := parseYAML(t, string(metadata)).Get("attributes").(map[string]any)
	require.True(t, ok)
	explained := []string{
		"collection_result", "drop_reason", "filter_reason", "hang_kind", "kind", "limit_action", "load_error_reason", "lost", "outcome",
		"runtime_result", "series_lost", "symbol_problem", "type_conflict_result", "unwind_result",
	}
	// What counts are told apart by, without being good or bad.
	plain := []string{"abi", "action", "background_work", "budget", "limit", "memory_part", "profile"}
	n := 0
	for name, a := range attributes {
		values, ok := a.(map[string]any)["enum"].([]any)
		if !ok || slices.Contains(plain, name) {
			continue
		}
		require.Contains(t, explained, name, "explain its values in docs/troubleshooting.md, and add it here")
		for _, value := range values {
			require.Contains(t, string(page), "`"+value.(string)+"`", "of %s", name)
			n++
		}
	}
	rules, err := os.ReadFile(filepath.Join(prometheusFiles, "alerts.yaml"))
	require.NoError(t, err)
	dashboards, err := os.ReadFile("../../docs/dashboards.md")
	require.NoError(t, err)
	alerts := alertName.FindAllSubmatch(rules, -1)
	require.NotEmpty(t, alerts)
	for _, alert := range alerts {
		row := "\n| " + string(alert[1]) + " | "
		require.Contains(t, string(page), row, "what to do about it")
		require.Contains(t, string(dashboards), row, "when it fires")
		n++
	}
	fmt.Printf("%d outcomes, reasons and alerts are explained\n", n)
	require.NotZero(t, n)
}
