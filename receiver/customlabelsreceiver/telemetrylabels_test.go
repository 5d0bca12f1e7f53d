package customlabelsreceiver

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadatatest"
)

// labelSection has one label of ABI v1, as internal/bpf/src/record.h has it.
func labelSection(key, value string) []byte {
	b := make([]byte, 16+12, 128)
	b[0], b[1] = byte(labels.ABIV1), byte(labels.OutcomePresent)
	binary.LittleEndian.PutUint16(b[2:], uint16(12+len(key)+len(value)))
	binary.LittleEndian.PutUint32(b[16:], uint32(len(key)))
	binary.LittleEndian.PutUint32(b[20:], uint32(len(value)))
	binary.LittleEndian.PutUint16(b[24:], uint16(len(key)))
	binary.LittleEndian.PutUint16(b[26:], uint16(len(value)))
	return append(append(b, key...), value...)
}

// What a registry counts is shown by user, budget and rule; users beyond the cap share a series.
func TestTelemetryLabels(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Labels.Budgets.Users, cfg.Labels.Budgets.Sets = 2, 1
	cfg.Labels.Rules = []LabelRule{{Name: "named", Key: "a", Action: "drop"}, {Key: "b", Action: "keep"}}
	require.NoError(t, cfg.Validate())
	registry, err := labels.NewRegistry(labels.Options{Rules: cfg.Labels.rules(), Budgets: cfg.Labels.Budgets.budgets()})
	require.NoError(t, err)
	channel := registry.NewChannel()
	add := func(uid uint32, container, key, value string) {
		registry.Count(channel.Decode(labels.Origin{User: labels.User{UID: uid, Container: container}}, nil, labelSection(key, value)))
	}
	for range 2 {
		add(7, "", "a", "1")
		add(7, "", "b", "1")
	}
	add(7, "", "b", "2")
	add(7, "c", "b", "2")
	add(7, "c", "b", "\xff")
	add(7, "c", "b", "\xff")
	add(8, "", "b", "1")
	add(9, "", "b", "2")
	channel.EndInterval()

	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	var users userSeries
	a, err := newTelemetry(settingsOf(tt, "a"), cfg, func(s *snapshot) {
		s.users = &users
		s.labels.readRegistry(registry, &users, len(cfg.Labels.Rules))
	})
	require.NoError(t, err)
	opt := metricdatatest.IgnoreTimestamp()
	const ra = "receiver=custom_labels/a"
	of := func(n int64, user attribute.KeyValue, kvs ...string) metricdata.DataPoint[int64] {
		p := point(n, append(kvs, ra)...)
		p.Attributes = attribute.NewSet(append(p.Attributes.ToSlice(), user)...)
		return p
	}
	seven, others := attribute.Int("user.id", 7), attribute.Bool("user.other", true)
	metadatatest.AssertEqualReceiverCustomLabelsOverflowSamples(t, tt,
		[]metricdata.DataPoint[int64]{of(3, seven, "budget=sets"), of(1, others, "budget=sets")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsRuleMatches(t, tt,
		[]metricdata.DataPoint[int64]{point(2, ra, "rule=named", "action=drop"), point(8, ra, "rule=1", "action=keep")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsTypeConflicts(t, tt,
		[]metricdata.DataPoint[int64]{of(2, seven, "result=stringified")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsLabelUsers(t, tt, []metricdata.DataPoint[int64]{point(2, ra)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsSharedBudgetSamples(t, tt, []metricdata.DataPoint[int64]{point(2, ra)}, opt)
	m, err := tt.GetMetric("otelcol_receiver_custom_labels_label_budget_used")
	require.NoError(t, err)
	used := map[string]int64{}
	for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
		budget, _ := p.Attributes.Value("budget")
		user, _ := p.Attributes.Value("user.id")
		used[budget.AsString()+user.String()] = p.Value
	}
	require.EqualValues(t, 1, used["sets7"])
	require.EqualValues(t, 1, used["keys7"], "not both containers' together")
	require.NoError(t, a.close())
}
