//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// lossPanels show nothing but zeros of hosts that lose nothing.
var lossPanels = []string{
	"Tenant not known", "Samples lost", "Tenant not known, by user", "Samples lost, by reason", "Refused and failed", "Hanging",
}

// A panelTruth is what a panel of CPU time is to show, in parts of the whole.
type panelTruth struct {
	by     []string
	want   map[string]float64
	within float64
}

func cpuPanels(truth *promTruth) map[string]panelTruth {
	tenants := maps.Clone(truth.tenant)
	tenants[""] = truth.without
	return map[string]panelTruth{
		"CPU by tenant":                {[]string{"tenant"}, tenants, promShare},
		"Top tenants":                  {[]string{"tenant"}, truth.tenant, promShare},
		"CPU by route":                 {[]string{"tenant", "route"}, truth.route, promShare},
		"CPU by service":               {[]string{"service_name"}, truth.service, promShare},
		"Without a tenant, by service": {[]string{"service_name"}, truth.serviceWithout, 0.1},
	}
}

// checkPanels runs each query of the dashboard for healthy hosts: panels of CPU time show
// what the writers measured, panels of losses zeros, and all others something.
func checkPanels(t *testing.T, bounds *testutil.Bounds, p *prometheus, dash *dashboard, instances string, truth *promTruth) {
	t.Helper()
	cpu := cpuPanels(truth)
	compared, zero, others := 0, 0, 0
	for _, panel := range dash.panels() {
		var series []promSeries
		for _, target := range panel.Targets {
			got := dash.ask(p, target, instances)
			require.NotEmpty(t, got, "%s: no data: %s", panel.Title, target.Expr)
			series = append(series, got...)
		}
		sum := sumsBy(series, (*promSeries).total)[""]
		if panel.Title == "CPUs in use" { // at each second
			fmt.Printf("%s: %.3f s, %.3f s measured\n", panel.Title, sum, truth.all)
			require.InEpsilon(bounds, truth.all, sum, promWhole)
		}
		of, isCPU := cpu[panel.Title]
		switch {
		case isCPU:
			of.compare(bounds, panel.Title, sumsBy(series, (*promSeries).total, of.by...))
			compared++
		case slices.Contains(lossPanels, panel.Title):
			require.Zero(t, sum, panel.Title)
			zero++
		default:
			require.Positive(t, sum, panel.Title)
			others++
		}
	}
	require.Equal(t, len(cpu), compared, "panels of CPU time")
	require.Equal(t, len(lossPanels), zero, "panels of losses")
	fmt.Printf("%d panels show the CPU time that was measured, %d no loss, %d something\n", compared, zero, others)
}

// compare holds the parts of what a panel shows against the truth. Of programs' first
// instants there is time without labels.
func (of panelTruth) compare(bounds *testutil.Bounds, title string, got map[string]float64) {
	var gotSum, wantSum float64
	for _, seconds := range got {
		gotSum += seconds
	}
	for _, seconds := range of.want {
		wantSum += seconds
	}
	for _, name := range slices.Sorted(maps.Keys(of.want)) {
		has, wants := got[name]/gotSum, of.want[name]/wantSum
		fmt.Printf("%-30s %-24s %5.1f %% (%5.1f)\n", title, name, 100*has, 100*wants)
		require.InDelta(bounds, wants, has, of.within, "%s: %s", title, name)
	}
}

// checkRules runs the query of each rule. All are evaluated, recorded ones are there, and no
// alert is about a healthy host.
func checkRules(t *testing.T, p *prometheus, healthy string) {
	t.Helper()
	recorded, alerts := 0, 0
	for name, rule := range p.rules() {
		require.Equal(t, "ok", rule.Health, "%s: %s", name, rule.LastError)
		require.False(t, rule.LastEvaluation.IsZero(), name)
		answer := p.query(rule.Query)
		if rule.Type == "alerting" {
			alerts++
			continue
		}
		require.NotEmpty(t, answer, name)
		require.NotEmpty(t, p.queryRange(name), name)
		recorded++
	}
	p.await("no alert about a healthy host", func() bool { return len(p.query(`ALERTS{instance=~"`+healthy+`"}`)) == 0 })
	p.healthy = time.Now()
	fmt.Printf("%d rules record, %d alert\n", recorded, alerts)
}

// checkAlerts waits until each alert fires and each panel of losses shows one, of hosts
// that have what they are for.
func checkAlerts(t *testing.T, p *prometheus, dash *dashboard, losing *promHost, healthy string) {
	t.Helper()
	const (
		afterwards = "CustomLabelsTenantsUnknown" // labels are read late where there is no time to read files
		ofKafka    = "CustomLabelsKafkaBehind"    // no host has one; TestFleet has its metric
		restarts   = "CustomLabelsRestarts"       // or reloads: three
	)
	for name, rule := range p.rules() {
		if rule.Type == "alerting" && name != afterwards && name != ofKafka && name != restarts {
			awaitAlert(t, p, name, healthy)
		}
	}
	// From now on its metrics are taken, and it reads labels: first there is no room for them,
	// then for series.
	losing.reload(losing.losing(p.address, 1, 8))
	awaitAlert(t, p, afterwards, healthy)
	losing.reload(losing.losing(p.address, 1, 16))
	for _, panel := range dash.panels() {
		if !slices.Contains(append([]string{"Alerts"}, lossPanels...), panel.Title) {
			continue
		}
		for _, target := range panel.Targets {
			p.await("a loss in "+panel.Title+": "+target.Expr, func() bool {
				return sumsBy(dash.ask(p, target, losing.scrape), (*promSeries).total)[""] > 0
			})
		}
	}
	p.await("the second reload", func() bool {
		return len(p.query(fmt.Sprintf("resets(otelcol_process_uptime{instance=%q}[1h]) == 2", losing.scrape))) > 0
	})
	losing.reload(losing.losing(p.address, 1, 16))
	awaitAlert(t, p, restarts, healthy)
}

// awaitAlert waits until an alert has fired, and not for a healthy host.
func awaitAlert(t *testing.T, p *prometheus, name, healthy string) {
	t.Helper()
	fired := func(instance string, since time.Time) []promSeries {
		return p.query(fmt.Sprintf(`max_over_time(ALERTS{alertname=%q, alertstate="firing", instance%s}[%ds])`,
			name, instance, int(time.Since(since).Seconds())))
	}
	p.await("the alert "+name, func() bool { return len(fired(`!~"`+healthy+`"`, p.began)) > 0 })
	fmt.Printf("fired: %s\n", name)
	require.Empty(t, fired(`=~"`+healthy+`"`, p.healthy), "%s about a healthy host", name)
}
