package customlabelsreceiver

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

const repositoryRoot = "../.."

var (
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	fromTo    = regexp.MustCompile(`^(\S+) to ([^\s,;]+)`)
	upTo      = regexp.MustCompile(`^up to (\d+) (selectors|rules|keys|bytes)`)
	ofOurs    = regexp.MustCompile(`^custom_labels\.[a-z_.]*[a-z]$`)
	ofKey     = regexp.MustCompile(`^(?:[aA]ttr|Metric)[A-Z]`)
	ofMetric  = regexp.MustCompile("`receiver_custom_labels_([a-z_]+)`")
	ofMetrics = regexp.MustCompile(`(?m)^### otelcol_receiver_custom_labels_([a-z_]+)$`)
	putMethod = regexp.MustCompile(`^Put(?:Str|Int|Bool|Double|Empty\w*)$`)
)

// codeSpans are the texts between backquotes.
func codeSpans(text string) []string { return submatches(codeSpan, text) }

// submatches are what a pattern's group has matched.
func submatches(pattern *regexp.Regexp, text string) (found []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repositoryRoot, page))
	require.NoError(t, err)
	return string(text)
}

// docsRows are the rows of the tables of a page whose first column has this heading.
func docsRows(t *testing.T, page, heading string) (rows [][]string) {
	t.Helper()
	inside := false
	for line := range strings.Lines(readPage(t, page)) {
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case cells[0] == heading:
			inside = true
		case inside && !strings.HasPrefix(cells[0], "---"):
			rows = append(rows, cells)
		}
	}
	require.NotEmpty(t, rows, "%s has no table of %s", page, heading)
	return rows
}

// withKey is a configuration with one key, whose sections are separated as confmap does.
func withKey(key string, value any) map[string]any {
	parts := strings.Split(key, confmap.KeyDelimiter)
	for _, part := range slices.Backward(parts) {
		value = map[string]any{part: value}
	}
	return value.(map[string]any)
}

// tryKey validates the defaults with one key changed.
func tryKey(t *testing.T, key string, value any) error {
	t.Helper()
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(withKey(key, value)).Unmarshal(cfg), key)
	if key == "labels::trace_id_keys" {
		cfg.Labels.SpanIDKeys = []IDKey{{Key: "s"}}
	}
	if key == "labels::span_id_keys" {
		cfg.Labels.TraceIDKeys = []IDKey{{Key: "t"}}
	}
	return confmap.Validate(cfg)
}

// settingsPage has the table of all keys, and rulesPage those of selectors and rules.
const (
	settingsPage = "receiver/customlabelsreceiver/README.md"
	rulesPage    = "docs/configuration.md"
)

// docsDefaults are the defaults that settingsPage has, by key.
func docsDefaults(t *testing.T) *confmap.Conf {
	t.Helper()
	conf := confmap.New()
	for _, row := range docsRows(t, settingsPage, "key") {
		for _, key := range codeSpans(row[0]) {
			var value any
			if row[1] != "none" {
				spans := codeSpans(row[1])
				require.Len(t, spans, 1, "%s: a default between backquotes, or none", key)
				read, err := confmap.NewRetrievedFromYAML([]byte(spans[0]))
				require.NoError(t, err, key)
				value, err = read.AsRaw()
				require.NoError(t, err, key)
			}
			require.NoError(t, conf.Merge(confmap.NewFromStringMap(withKey(key, value))), key)
		}
	}
	return conf
}

// TestDocsDefaults: settingsPage has every key and no other, with its default.
func TestDocsDefaults(t *testing.T) {
	said := docsDefaults(t)
	require.ElementsMatch(t, readSchema(t).keys(""), said.AllKeys())
	cfg := new(Config)
	require.NoError(t, withoutNone(said).Unmarshal(cfg))
	require.Equal(t, NewDefaultOffCPU(), *cfg.OffCPU.Get())
	cfg.OffCPU = configoptional.Default(NewDefaultOffCPU()) // without the block
	require.Equal(t, NewFactory().CreateDefaultConfig(), cfg)
}

// TestDocsBounds: the bounds of settingsPage are those of Validate: what they allow
// passes, and one step outside does not.
func TestDocsBounds(t *testing.T) {
	defaults := docsDefaults(t)
	for _, row := range docsRows(t, settingsPage, "key") {
		for _, key := range codeSpans(row[0]) {
			within, without := boundsOf(t, key, row[2], defaults.Get(key))
			for _, value := range within {
				assert.NoError(t, tryKey(t, key, value), "%s: %v", key, value)
			}
			for _, value := range without {
				assert.ErrorContains(t, tryKey(t, key, value), key[strings.LastIndex(key, ":")+1:], "%v", value)
			}
		}
	}
}

// boundsOf returns values at the bounds that a page says of a key, and values just outside.
func boundsOf(t *testing.T, key, bounds string, byDefault any) (within, without []any) {
	t.Helper()
	if bounds == "" {
		require.IsType(t, true, byDefault, "%s: its bounds are missing", key)
		return nil, nil
	}
	if m := upTo.FindStringSubmatch(bounds); m != nil {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		return []any{many(key, m[2], n)}, []any{many(key, m[2], n+1)}
	}
	if m := fromTo.FindStringSubmatch(bounds); m != nil {
		return numbersAt(t, m[1], m[2])
	}
	names := codeSpans(bounds)
	require.NotEmpty(t, names, "%s: bounds that this test cannot read: %s", key, bounds)
	for _, name := range names {
		within = append(within, name)
	}
	err := tryKey(t, key, "neither")
	require.ErrorContains(t, err, "must be one of ["+strings.Join(names, ", ")+"]", key)
	return within, []any{"neither"}
}

// many is a list of n entries for a key, or a text of n bytes.
func many(key, what string, n int) any {
	if what == "bytes" {
		return strings.Repeat("x", n)
	}
	var list []any
	for i := range n {
		name := fmt.Sprintf("k%d", i)
		switch {
		case what == "selectors":
			list = append(list, map[string]any{"pid": i + 1})
		case what == "rules":
			list = append(list, map[string]any{"key": name, "action": "keep"})
		case strings.HasPrefix(key, "labels::"):
			list = append(list, map[string]any{"key": name})
		default:
			list = append(list, name)
		}
	}
	return list
}

// numbersAt returns the two bounds, and what is just below and above.
func numbersAt(t *testing.T, low, high string) (within, without []any) {
	t.Helper()
	if from, err := strconv.Atoi(low); err == nil {
		if to, err := strconv.Atoi(high); err == nil {
			return []any{from, to}, []any{from - 1, to + 1}
		}
	}
	if from, err := strconv.ParseFloat(low, 64); err == nil {
		to, err := strconv.ParseFloat(high, 64)
		require.NoError(t, err)
		return []any{from, to}, []any{from * 0.999, to * 1.001}
	}
	from, err := time.ParseDuration(low)
	require.NoError(t, err)
	to, err := time.ParseDuration(high)
	require.NoError(t, err)
	return []any{from, to}, []any{from - 1, to + 1}
}

// TestDocsRules: docs/configuration.md has the fields of selectors and rules, their sources
// and actions.
func TestDocsRules(t *testing.T) {
	first := func(heading string) (names []string) {
		for _, row := range docsRows(t, rulesPage, heading) {
			names = append(names, codeSpans(row[0])...)
		}
		return names
	}
	fields := func(section, list string) []string {
		return slices.Collect(maps.Keys(readSchema(t).Properties[section].Properties[list].Items.Properties))
	}
	require.ElementsMatch(t, fields("targets", "include"), first("field of a selector"))
	require.ElementsMatch(t, fields("labels", "rules"), append(first("condition"), "name", "action", "to", "limit"))
	require.Equal(t, names(labels.NumActions, func(i int) string { return labels.Action(i).String() }), first("action"))
	for _, row := range docsRows(t, rulesPage, "condition") {
		if slices.Equal(codeSpans(row[0]), []string{"source"}) {
			require.ElementsMatch(t, slices.Collect(maps.Keys(ruleSources())), append(codeSpans(row[1]), ""))
		}
	}
}

// TestDocsMetrics: the page that explains the receiver's own metrics has each of them, and no other.
func TestDocsMetrics(t *testing.T) {
	const page = "docs/troubleshooting.md"
	metrics := submatches(ofMetrics, readPage(t, "receiver/customlabelsreceiver/documentation.md"))
	require.NotEmpty(t, metrics)
	said := submatches(ofMetric, readPage(t, page))
	for _, heading := range []string{"metric, value", "metric"} {
		for _, row := range docsRows(t, page, heading) {
			said = append(said, codeSpans(row[0])[0])
		}
	}
	slices.Sort(said)
	require.ElementsMatch(t, metrics, slices.Compact(said))
}

// clientMetadata are names of ours that are no attributes: docs/configuration.md has them.
var clientMetadata = []string{"custom_labels.user"}

// emittedNames are the names of attributes and metrics in the code of the product: constants
// that are named so, keys of maps of attributes, and whatever begins as ours do.
func emittedNames(t *testing.T) (emitted []string) {
	t.Helper()
	for _, folder := range []string{"internal", "receiver"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repositoryRoot, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				if slices.Contains([]string{"testdata", "testutil", "samplestore"}, entry.Name()) {
					return fs.SkipDir
				}
				return nil
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			emitted = append(emitted, namesInFile(file)...)
			return nil
		}))
	}
	slices.Sort(emitted)
	return slices.DeleteFunc(slices.Compact(emitted), func(name string) bool { return slices.Contains(clientMetadata, name) })
}

func namesInFile(file *ast.File) (found []string) {
	literal := func(e ast.Expr) (string, bool) {
		l, ok := e.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(l.Value)
		return text, err == nil
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) && ofKey.MatchString(name.Name) {
					if text, ok := literal(n.Values[i]); ok {
						found = append(found, text)
					}
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && putMethod.MatchString(f.Sel.Name) && len(n.Args) > 0 {
				if text, ok := literal(n.Args[0]); ok {
					found = append(found, text)
				}
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok && ofOurs.MatchString(text) {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

// TestDocsEmitted: docs/emitted-data.md names every attribute and metric that the code emits,
// and no other. Those about the receiver itself are in documentation.md, which is generated.
func TestDocsEmitted(t *testing.T) {
	var said []string
	for _, heading := range []string{"attribute", "metric"} {
		for _, row := range docsRows(t, "docs/emitted-data.md", heading) {
			said = append(said, codeSpans(row[0])...)
		}
	}
	own := readPage(t, "receiver/customlabelsreceiver/documentation.md")
	emitted := slices.DeleteFunc(emittedNames(t), func(name string) bool {
		return strings.Contains(own, "\n| "+name+" |") && !slices.Contains(said, name) // process.real_user.id is of both
	})
	require.ElementsMatch(t, emitted, said)

	pages, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "*.md"))
	require.NoError(t, err)
	for _, page := range append(pages, filepath.Join(repositoryRoot, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			for _, span := range codeSpans(line) {
				if ofOurs.MatchString(span) {
					assert.Contains(t, append(slices.Clone(clientMetadata), emitted...), span, page)
				}
			}
		}
	}
}
