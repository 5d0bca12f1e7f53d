//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	prometheusProgram = "../../bin/prometheus"
	prometheusFiles   = "../../deploy/prometheus"
)

// A prometheus is a real one that runs with the files of deploy/prometheus.
type prometheus struct {
	*child
	address string
	began   time.Time
	healthy time.Time // since when no alert is about a healthy host
}

// quickRules has rules look at seconds where they look at minutes: they are the same otherwise.
// An alert waits for 5 s: a collector that is held up on a busy machine counts for a moment
// more hits than it has judged, which a rate over 10 s shows.
var quickRules = []struct {
	minutes *regexp.Regexp
	seconds string
}{
	{regexp.MustCompile(`\[5m\]`), "[10s]"},
	{regexp.MustCompile(`(?m)^(\s+)interval: 1m$`), "${1}interval: 1s"},
	{regexp.MustCompile(`(?m)^(\s+)for: \d+m$`), "${1}for: 5s"},
}

// startPrometheus runs the command at the head of prometheus.yml and returns when it is
// ready. It scrapes the targets.
func startPrometheus(t *testing.T, targets ...string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(prometheusFiles, "prometheus.yml")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	config := parseYAML(t, string(text)).ToStringMap()
	for _, name := range config["rule_files"].([]any) {
		writeQuickRules(t, filepath.Join(prometheusFiles, name.(string)), filepath.Join(dir, name.(string)))
	}
	config["global"] = map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"}
	scrape := config["scrape_configs"].([]any)[0].(map[string]any)
	scrape["scrape_interval"] = "1s"
	scrape["static_configs"] = []any{map[string]any{"targets": targets}}
	quick, err := json.Marshal(config) // which is YAML, too
	require.NoError(t, err)
	file := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(file, quick, 0o600))

	documented := commentedCommands(source, string(text))
	require.Len(t, documented, 1)
	lines := commandLines(documented[0].text)
	require.Len(t, lines, 1)
	command := strings.Fields(lines[0])
	require.Equal(t, []string{"prometheus", "--config.file=deploy/prometheus/prometheus.yml"}, command[:2])
	p := &prometheus{address: freeAddress(t), began: time.Now()}
	args := append([]string{"--config.file=" + file}, command[2:]...)
	p.child = startChild(t, nil, prometheusProgram, append(args,
		"--web.listen-address="+p.address, "--storage.tsdb.path="+filepath.Join(dir, "data"))...)
	p.await("readiness", func() bool { return strings.Contains(get("http://"+p.address+"/-/ready"), "Ready") })
	return p
}

func writeQuickRules(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	for _, change := range quickRules {
		text = change.minutes.ReplaceAll(text, []byte(change.seconds))
	}
	require.NotRegexp(t, `[\[ ]\d+m\b`, string(text), "minutes that this test does not know")
	require.NoError(t, os.WriteFile(to, text, 0o600))
}

// ask calls the HTTP API and decodes the data of its answer.
func (p *prometheus) ask(path string, params url.Values, data any) {
	p.t.Helper()
	response, err := http.Get("http://" + p.address + "/api/v1/" + path + "?" + params.Encode()) //nolint:noctx // a child of this test
	require.NoError(p.t, err)
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	require.NoError(p.t, json.NewDecoder(response.Body).Decode(&answer), path)
	require.Equal(p.t, "success", answer.Status, "%s %v: %s", path, params, answer.Error)
	require.NoError(p.t, json.Unmarshal(answer.Data, data))
}

// A promSeries is one of a query's answer, with one or many points.
type promSeries struct {
	Metric map[string]string `json:"metric"`
	Value  promPoint         `json:"value"`
	Values []promPoint       `json:"values"`
}

// A promPoint is [seconds, "value"].
type promPoint [2]any

func (v promPoint) number() float64 {
	text, _ := v[1].(string)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("no number: %v", v)) // Prometheus says nothing else
	}
	return n
}

// total adds up the points, but for those that are parts of nothing.
func (s *promSeries) total() (sum float64) {
	for _, v := range s.Values {
		if n := v.number(); !math.IsNaN(n) {
			sum += n
		}
	}
	return sum
}

// query answers for now.
func (p *prometheus) query(expr string) []promSeries {
	p.t.Helper()
	var data struct{ Result []promSeries }
	p.ask("query", url.Values{"query": {expr}}, &data)
	return data.Result
}

// queryRange answers for each second since the start.
func (p *prometheus) queryRange(expr string) []promSeries {
	p.t.Helper()
	var data struct{ Result []promSeries }
	p.ask("query_range", url.Values{
		"query": {expr}, "step": {"1"},
		"start": {strconv.FormatInt(p.began.Unix(), 10)}, "end": {strconv.FormatInt(time.Now().Unix(), 10)},
	}, &data)
	return data.Result
}

// sums are the values of an expression by labels, joined by a space.
func (p *prometheus) sums(expr string, by ...string) map[string]float64 {
	p.t.Helper()
	return sumsBy(p.query(expr), func(s *promSeries) float64 { return s.Value.number() }, by...)
}

func sumsBy(series []promSeries, value func(*promSeries) float64, by ...string) map[string]float64 {
	sums := map[string]float64{}
	for i := range series {
		var names []string
		for _, label := range by {
			names = append(names, series[i].Metric[label])
		}
		sums[strings.Join(names, " ")] += value(&series[i])
	}
	return sums
}

// A promRule is a rule that was loaded, and what it came to.
type promRule struct {
	Name, Query, Type, Health, LastError, State string
	LastEvaluation                              time.Time
}

// rules are all, by name.
func (p *prometheus) rules() map[string]promRule {
	p.t.Helper()
	var data struct{ Groups []struct{ Rules []promRule } }
	p.ask("rules", nil, &data)
	all := map[string]promRule{}
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			all[rule.Name] = rule
		}
	}
	return all
}
