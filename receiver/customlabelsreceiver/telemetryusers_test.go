package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadatatest"
)

// A series is a user's; the last one is of all users without one of their own.
func TestUserAttribute(t *testing.T) {
	users := []uint32{1000, 1001}
	require.Equal(t, attribute.Int64("process.real_user.id", 1001), userAttribute(users, 1))
	require.Equal(t, attribute.Bool("user.other", true), userAttribute(users, pipeline.OtherUsers))
}

// What a registry counts is shown by user, budget and rule; users beyond the cap share a series.
func TestTelemetryLabels(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Labels.Rules = []LabelRule{{Name: "named", Key: "a", Action: "drop"}, {Key: "b", Action: "keep"}}
	require.NoError(t, cfg.Validate())
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	a, err := telemetryOf(tt, "a", cfg, func(s *pipeline.Snapshot) {
		s.Users = []uint32{7}
		s.Labels.Overflow[labels.BudgetSets] = pipeline.ByUser{0: 3, pipeline.OtherUsers: 1}
		s.Labels.BudgetUsed[labels.BudgetSets][0], s.Labels.BudgetUsed[labels.BudgetKeys][0] = 0.5, 0.25
		s.Labels.TypeConflicts[pipeline.TypeConflictStringified][0] = 2
		s.Labels.OthersSamples = 2
		s.Labels.RuleMatches = []int64{2, 8}
	})
	require.NoError(t, err)
	opt := metricdatatest.IgnoreTimestamp()
	const ra = "receiver=custom_labels/a"
	of := func(n int64, user attribute.KeyValue, kvs ...string) metricdata.DataPoint[int64] {
		p := point(n, append(kvs, ra)...)
		p.Attributes = attribute.NewSet(append(p.Attributes.ToSlice(), user)...)
		return p
	}
	seven, others := attribute.Int("process.real_user.id", 7), attribute.Bool("user.other", true)
	metadatatest.AssertEqualReceiverCustomLabelsOverflowSamples(t, tt,
		[]metricdata.DataPoint[int64]{of(3, seven, "budget=sets"), of(1, others, "budget=sets")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsRuleMatches(t, tt,
		[]metricdata.DataPoint[int64]{point(2, ra, "rule=named", "action=drop"), point(8, ra, "rule=1", "action=keep")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsTypeConflicts(t, tt,
		[]metricdata.DataPoint[int64]{of(2, seven, "result=stringified")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsSharedBudgetSamples(t, tt, []metricdata.DataPoint[int64]{point(2, ra)}, opt)
	m, err := tt.GetMetric("otelcol_receiver_custom_labels_label_budget_used")
	require.NoError(t, err)
	used := map[string]float64{}
	for _, p := range m.Data.(metricdata.Gauge[float64]).DataPoints {
		budget, _ := p.Attributes.Value("budget")
		user, _ := p.Attributes.Value("process.real_user.id")
		used[budget.AsString()+user.String()] = p.Value
	}
	require.Equal(t, map[string]float64{"sets7": 0.5, "keys7": 0.25}, used)
	require.NoError(t, a.close())
}
