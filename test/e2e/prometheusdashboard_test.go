//go:build linux && (amd64 || arm64)

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A dashboard is what Grafana reads of the one in deploy/prometheus.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Panels        []dashPanel
	Templating    struct{ List []dashVariable }
}

type dashPanel struct {
	ID                       int
	Type, Title, Description string
	Datasource               dashSource
	GridPos                  dashPosition
	Targets                  []dashTarget
}

type dashPosition struct{ X, Y, W, H int }

type dashTarget struct {
	RefID        string `json:"refId"`
	Datasource   dashSource
	Expr         string
	LegendFormat string
	Instant      bool
}

type dashSource struct{ Type, UID string }

type dashVariable struct {
	Name, Type, Definition, AllValue string
	Datasource                       dashSource
}

var (
	dashVariableName = regexp.MustCompile(`\$\{?(\w+)\}?`)
	legendLabel      = regexp.MustCompile(`\{\{(\w+)\}\}`)
	// labelValues is how a variable asks for its values: label_values(METRIC, LABEL).
	labelValues = regexp.MustCompile(`^label_values\((\S+), (\w+)\)$`)
)

// readDashboard checks what does not need a Prometheus: that Grafana can show all of it.
func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(prometheusFiles, "dashboard.json"))
	require.NoError(t, err)
	d := &dashboard{}
	require.NoError(t, json.Unmarshal(text, d))
	require.NotEmpty(t, d.UID)
	require.NotEmpty(t, d.Title)
	require.GreaterOrEqual(t, d.SchemaVersion, 36, "from Grafana 9 on a data source is an object")
	known := map[string]bool{"__rate_interval": true, "__range": true}
	for _, v := range d.Templating.List {
		known[v.Name] = true
		if v.Type == "query" {
			require.Equal(t, dashSource{"prometheus", "${datasource}"}, v.Datasource, v.Name)
			require.Regexp(t, labelValues, v.Definition, v.Name)
		}
	}
	used := map[string]bool{"datasource": true}
	ids := map[int]bool{}
	cells := map[[2]int]string{}
	for _, panel := range d.Panels {
		require.False(t, ids[panel.ID], "id %d is there twice", panel.ID)
		ids[panel.ID] = true
		require.NotEmpty(t, panel.Title)
		at := panel.GridPos
		require.LessOrEqual(t, at.X+at.W, 24, panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				require.Empty(t, cells[[2]int{x, y}], "%s lies on another panel", panel.Title)
				cells[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		require.Contains(t, []string{"stat", "timeseries", "bargauge"}, panel.Type, panel.Title)
		require.NotEmpty(t, panel.Description, panel.Title)
		require.NotEmpty(t, panel.Targets, panel.Title)
		references := map[string]bool{}
		for _, target := range panel.Targets {
			require.Equal(t, dashSource{"prometheus", "${datasource}"}, target.Datasource, panel.Title)
			require.False(t, references[target.RefID], panel.Title)
			references[target.RefID] = true
			for _, m := range dashVariableName.FindAllStringSubmatch(target.Expr, -1) {
				require.True(t, known[m[1]], "%s: $%s is no variable", panel.Title, m[1])
				used[m[1]] = true
			}
		}
	}
	for _, v := range d.Templating.List {
		require.True(t, used[v.Name], "no panel uses $%s", v.Name)
	}
	return d
}

// panels are those with queries.
func (d *dashboard) panels() (all []dashPanel) {
	for _, panel := range d.Panels {
		if panel.Type != "row" {
			all = append(all, panel)
		}
	}
	return all
}

// expand puts values in the place of variables, as Grafana does; instance is a pattern.
func (d *dashboard) expand(expr, instance string) string {
	pairs := []string{"$__rate_interval", "10s", "$__range", "1h", "$instance", instance}
	for _, v := range d.Templating.List {
		pairs = append(pairs, "$"+v.Name, v.AllValue)
	}
	return strings.NewReplacer(pairs...).Replace(expr)
}

// ask runs the query of a target. Each label in the legend is one that the series have.
func (d *dashboard) ask(p *prometheus, target dashTarget, instance string) []promSeries {
	p.t.Helper()
	expr := d.expand(target.Expr, instance)
	require.NotContains(p.t, expr, "$")
	var series []promSeries
	if target.Instant {
		series = p.query(expr)
		for i := range series {
			series[i].Values = []promPoint{series[i].Value}
		}
	} else {
		series = p.queryRange(expr)
	}
	for i := range series {
		if len(series[i].Metric) == 0 {
			continue // the 0 of a query that has found nothing
		}
		for _, m := range legendLabel.FindAllStringSubmatch(target.LegendFormat, -1) {
			assert.Contains(p.t, series[i].Metric, m[1], "%s", target.Expr)
		}
	}
	return series
}

// checkVariables asks for the values that people choose from.
func (d *dashboard) checkVariables(p *prometheus, want map[string][]string) {
	p.t.Helper()
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		var values []string
		p.ask("label/"+m[2]+"/values", map[string][]string{"match[]": {m[1]}}, &values)
		require.NotEmpty(p.t, want[v.Name], v.Name)
		require.Subset(p.t, values, want[v.Name], v.Name)
	}
}
