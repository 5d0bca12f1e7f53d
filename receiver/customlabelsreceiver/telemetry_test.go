package customlabelsreceiver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadatatest"
)

func settingsOf(tt *componenttest.Telemetry, name string) receiver.Settings {
	set := receivertest.NewNopSettings(metadata.Type)
	set.ID = component.NewIDWithName(metadata.Type, name)
	set.TelemetrySettings = tt.NewTelemetrySettings()
	return set
}

// telemetryOf shows a snapshot of a receiver.
func telemetryOf(tt *componenttest.Telemetry, name string, cfg *Config, fill func(*pipeline.Snapshot)) (*telemetry, error) {
	return newTelemetry(settingsOf(tt, name), cfg, func() (s pipeline.Snapshot) {
		s.CPU().Enabled = true
		for kind := range s.Streams {
			s.Streams[kind].Kind = pipeline.Kind(kind)
		}
		fill(&s)
		return s
	})
}

func point(value int64, kvs ...string) metricdata.DataPoint[int64] {
	set := make([]attribute.KeyValue, 0, len(kvs))
	for _, kv := range kvs {
		key, value, _ := strings.Cut(kv, "=")
		set = append(set, attribute.String(key, value))
	}
	return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(set...), Value: value}
}

func withAttribute(p metricdata.DataPoint[int64], kv attribute.KeyValue) metricdata.DataPoint[int64] {
	p.Attributes = attribute.NewSet(append(p.Attributes.ToSlice(), kv)...)
	return p
}

// Two receivers publish through the same instruments and do not mix.
func TestTelemetryAccounting(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()

	a, err := telemetryOf(tt, "a", &Config{}, func(s *pipeline.Snapshot) {
		cpu := s.CPU()
		cpu.Hits = 1000
		cpu.Filtered = [pipeline.NumFilterReasons]int64{pipeline.FilterIdle: 300, pipeline.FilterTarget: 95, pipeline.FilterUnknownProcess: 5}
		cpu.Emitted = 500
		cpu.Dropped[pipeline.DropRingFull] = 7
		cpu.Dropped[pipeline.DropRefused] = 3
		s.Users = []uint32{1000, 1001}
		cpu.UserDropped[pipeline.UserDropShare][0] = 5
		cpu.UserDropped[pipeline.UserDropPendingFull][pipeline.OtherUsers] = 2
		s.LostLabels[1], s.LostStacks[1], s.LostFrames[1] = 11, 7, 13
		s.LabelReads[record.ABIV1][record.OutcomePresent] = 21
		s.UserStacks[record.OutcomeTruncated] = 5
		s.Anomalies[labels.AnomalyTruncatedValue] = 2
		s.TrackedProcesses = 12
		s.LabelSourceProcesses = 4
		cpu.RingBytes = 4096
		s.DroppedProcessEvents, s.DroppedAnnouncements = 1, 14
		s.ProcessLoadErrors[pipeline.LoadErrorFile] = 6
		s.UnwindTables, s.UnwindBytes = 2, 8192
		s.SymbolProblems[pipeline.SymbolTimedOut] = 3
		s.Hanging[pipeline.HangProcess], s.Hanging[pipeline.HangFile] = 24, 8
		s.UnwindFiles[pipeline.UnwindNoRoom] = 9
	})
	require.NoError(t, err)
	b, err := telemetryOf(tt, "b", &Config{}, func(s *pipeline.Snapshot) { s.CPU().Hits = 1 })
	require.NoError(t, err)

	opt := metricdatatest.IgnoreTimestamp()
	const ra, rb, cpu = "receiver=custom_labels/a", "receiver=custom_labels/b", "profile=cpu"
	metadatatest.AssertEqualReceiverCustomLabelsHits(t, tt,
		[]metricdata.DataPoint[int64]{point(1000, ra, cpu), point(1, rb, cpu)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsEmittedSamples(t, tt,
		[]metricdata.DataPoint[int64]{point(500, ra, cpu), point(0, rb, cpu)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsFilteredSamples(t, tt,
		[]metricdata.DataPoint[int64]{
			point(300, ra, cpu, "reason=idle"), point(95, ra, cpu, "reason=target"), point(5, ra, cpu, "reason=unknown_process"),
			point(0, rb, cpu, "reason=idle"), point(0, rb, cpu, "reason=target"), point(0, rb, cpu, "reason=unknown_process"),
		}, opt)
	var dropped []metricdata.DataPoint[int64]
	for r := range pipeline.DropReason(pipeline.DropReasons(0)) {
		n := map[pipeline.DropReason]int64{pipeline.DropRingFull: 7, pipeline.DropRefused: 3}[r]
		dropped = append(dropped, point(n, ra, cpu, "reason="+r.String()), point(0, rb, cpu, "reason="+r.String()))
	}
	metadatatest.AssertEqualReceiverCustomLabelsDroppedSamples(t, tt, dropped, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUserDroppedSamples(t, tt, []metricdata.DataPoint[int64]{
		withAttribute(point(5, ra, cpu, "reason=user_share"), attribute.Int64("process.real_user.id", 1000)),
		withAttribute(point(2, ra, cpu, "reason=pending_full"), attribute.Bool("user.other", true)),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUserEntryOverflow(t, tt, []metricdata.DataPoint[int64]{
		withAttribute(point(11, ra, "lost=labels"), attribute.Int64("process.real_user.id", 1001)),
		withAttribute(point(7, ra, "lost=stacks"), attribute.Int64("process.real_user.id", 1001)),
		withAttribute(point(13, ra, "lost=frames"), attribute.Int64("process.real_user.id", 1001)),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsPendingSamples(t, tt,
		[]metricdata.DataPoint[int64]{point(90, ra, cpu), point(1, rb, cpu)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsLabelReads(t, tt,
		[]metricdata.DataPoint[int64]{point(21, ra, "abi=custom_labels_v1", "outcome=present")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUserStacks(t, tt,
		[]metricdata.DataPoint[int64]{point(5, ra, "outcome=truncated")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsLabelAnomalies(t, tt,
		[]metricdata.DataPoint[int64]{point(2, ra, "kind=truncated_value")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsTrackedProcesses(t, tt,
		[]metricdata.DataPoint[int64]{point(12, ra), point(0, rb)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsLabelSourceProcesses(t, tt,
		[]metricdata.DataPoint[int64]{point(4, ra), point(0, rb)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsRingBufferUsed(t, tt,
		[]metricdata.DataPoint[int64]{point(4096, ra, cpu), point(0, rb, cpu)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsDroppedProcessEvents(t, tt,
		[]metricdata.DataPoint[int64]{point(1, ra), point(0, rb)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsDroppedContextAnnouncements(t, tt,
		[]metricdata.DataPoint[int64]{point(14, ra), point(0, rb)}, opt)
	var loadErrors []metricdata.DataPoint[int64]
	for _, reason := range []string{"process_failed", "file_failed", "no_place", "mappings_cut", "not_published"} {
		n := map[string]int64{"file_failed": 6}[reason]
		loadErrors = append(loadErrors, point(n, ra, "reason="+reason), point(0, rb, "reason="+reason))
	}
	metadatatest.AssertEqualReceiverCustomLabelsProcessLoadErrors(t, tt, loadErrors, opt)
	metadatatest.AssertEqualReceiverCustomLabelsHanging(t, tt, []metricdata.DataPoint[int64]{
		point(24, ra, "kind=process"), point(8, ra, "kind=file"), point(0, rb, "kind=process"), point(0, rb, "kind=file"),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsSymbolProblems(t, tt,
		[]metricdata.DataPoint[int64]{point(3, ra, "problem=timed_out")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUnwindTables(t, tt,
		[]metricdata.DataPoint[int64]{point(2, ra), point(0, rb)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUnwindUsed(t, tt,
		[]metricdata.DataPoint[int64]{point(8192, ra), point(0, rb)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUnwindFiles(t, tt,
		[]metricdata.DataPoint[int64]{point(9, ra, "result=no_room")}, opt)

	require.NoError(t, a.close())
	metadatatest.AssertEqualReceiverCustomLabelsHits(t, tt,
		[]metricdata.DataPoint[int64]{point(1, rb, cpu)}, opt)
	require.NoError(t, b.close())
	_, err = tt.GetMetric("otelcol_receiver_custom_labels_hits")
	require.Error(t, err, "nothing is read after close")
}

func TestObservedConsumer(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	set := settingsOf(tt, "a")

	sink := new(consumertest.ProfilesSink)
	good, err := newObservedConsumer(set, sink)
	require.NoError(t, err)
	require.NoError(t, good.ConsumeProfiles(t.Context(), twoSamples()))
	require.Len(t, sink.AllProfiles(), 1)

	bad, err := newObservedConsumer(set, consumertest.NewErr(errTest))
	require.NoError(t, err)
	require.ErrorIs(t, bad.ConsumeProfiles(t.Context(), twoSamples()), errTest)

	requireSum(t, tt, "otelcol_receiver_accepted_profile_samples", 2)
	requireSum(t, tt, "otelcol_receiver_refused_profile_samples", 2)
}

func requireSum(t *testing.T, tt *componenttest.Telemetry, name string, want int64) {
	t.Helper()
	m, err := tt.GetMetric(name)
	require.NoError(t, err)
	var sum int64
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		sum += p.Value
	}
	require.Equal(t, want, sum)
}

// Of switches, each belongs to exactly one sum, too; without off-CPU profiles there are none.
func TestTelemetryOffCPU(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	a, err := telemetryOf(tt, "a", &Config{}, func(s *pipeline.Snapshot) {
		s.CPU().Enabled = false
		off := s.OffCPU()
		off.Enabled, off.Hits, off.Emitted, off.RingBytes = true, 1000, 100, 64
		for r := range off.Filtered {
			off.Filtered[r] = int64(10 + r)
		}
		for r := range off.Dropped {
			off.Dropped[r] = int64(20 + r)
		}
		s.Users = []uint32{1000}
		off.UserDropped[pipeline.UserDropShare][0] = 4
	})
	require.NoError(t, err)

	opt := metricdatatest.IgnoreTimestamp()
	const ra, off = "receiver=custom_labels/a", "profile=off_cpu"
	metadatatest.AssertEqualReceiverCustomLabelsHits(t, tt, []metricdata.DataPoint[int64]{point(1000, ra, off)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsEmittedSamples(t, tt, []metricdata.DataPoint[int64]{point(100, ra, off)}, opt)
	var filtered, dropped []metricdata.DataPoint[int64]
	pending := int64(1000 - 100)
	for r := range pipeline.FilterReason(pipeline.NumFilterReasons) {
		filtered = append(filtered, point(10+int64(r), ra, off, "reason="+r.String()))
		pending -= 10 + int64(r)
	}
	for r := range pipeline.DropReason(pipeline.NumDropReasons) {
		dropped = append(dropped, point(20+int64(r), ra, off, "reason="+r.String()))
		pending -= 20 + int64(r)
	}
	metadatatest.AssertEqualReceiverCustomLabelsFilteredSamples(t, tt, filtered, opt)
	metadatatest.AssertEqualReceiverCustomLabelsDroppedSamples(t, tt, dropped, opt)
	metadatatest.AssertEqualReceiverCustomLabelsUserDroppedSamples(t, tt, []metricdata.DataPoint[int64]{
		withAttribute(point(4, ra, off, "reason=user_share"), attribute.Int64("process.real_user.id", 1000)),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsPendingSamples(t, tt,
		[]metricdata.DataPoint[int64]{point(pending, ra, off)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsRingBufferUsed(t, tt, []metricdata.DataPoint[int64]{point(64, ra, off)}, opt)
	require.NoError(t, a.close())
}

// What is said of the metrics, where the receiver makes any.
func TestTelemetryMetering(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	a, err := telemetryOf(tt, "a", &Config{}, func(s *pipeline.Snapshot) {
		s.Users, s.OffCPU().Enabled = []uint32{1000}, true
		s.CPU().Metered, s.OffCPU().Metered = 10, 11
		s.Metering = pipeline.MeteringSnapshot{Enabled: true, Series: 12}
		s.Metering.Lost[pipeline.SeriesLostLabels][0] = 13
		s.Metering.Lost[pipeline.SeriesLostProcess][pipeline.OtherUsers] = 14
		s.Metering.Collections = [pipeline.NumCollectionResults]int64{pipeline.CollectionAccepted: 15, pipeline.CollectionRefused: 16}
	})
	require.NoError(t, err)
	b, err := telemetryOf(tt, "b", &Config{}, func(*pipeline.Snapshot) {})
	require.NoError(t, err)
	opt := metricdatatest.IgnoreTimestamp()
	const ra = "receiver=custom_labels/a"
	metadatatest.AssertEqualReceiverCustomLabelsMetricSamples(t, tt, []metricdata.DataPoint[int64]{
		point(10, ra, "profile=cpu"), point(11, ra, "profile=off_cpu"),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsMetricSeries(t, tt, []metricdata.DataPoint[int64]{point(12, ra)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsMetricOverflow(t, tt, []metricdata.DataPoint[int64]{
		withAttribute(point(13, ra, "lost=labels"), attribute.Int64("process.real_user.id", 1000)),
		withAttribute(point(14, ra, "lost=process"), attribute.Bool("user.other", true)),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsMetricCollections(t, tt, []metricdata.DataPoint[int64]{
		point(15, ra, "result=accepted"), point(16, ra, "result=refused"),
	}, opt)
	require.NoError(t, a.close())
	require.NoError(t, b.close())
}

// How near the limits of the whole receiver are.
func TestTelemetryLimits(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(t.Context())) }()
	a, err := telemetryOf(tt, "a", &Config{}, func(s *pipeline.Snapshot) {
		s.LimitUsed = [pipeline.NumLimits]float64{pipeline.LimitMemory: 0.5, pipeline.LimitBPFMaps: 0.25, pipeline.LimitBackgroundCPU: 0.125}
		s.LimitActions[pipeline.LimitProcessesReduced] = 3
		s.Memory[budget.OfBatches] = 4096
		s.BPFMapBytes = 8192
		s.Background[budget.Rows], s.BackgroundLeft[budget.Rows] = 1.5, 2
	})
	require.NoError(t, err)
	opt := metricdatatest.IgnoreTimestamp()
	const ra = "receiver=custom_labels/a"
	part := func(value float64, kvs ...string) metricdata.DataPoint[float64] {
		return metricdata.DataPoint[float64]{Attributes: point(0, kvs...).Attributes, Value: value}
	}
	metadatatest.AssertEqualReceiverCustomLabelsLimitUsed(t, tt, []metricdata.DataPoint[float64]{
		part(0.5, ra, "limit=max_memory_bytes"), part(0.25, ra, "limit=max_bpf_map_bytes"), part(0.125, ra, "limit=max_background_cpu"),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsLimitActions(t, tt, []metricdata.DataPoint[int64]{point(3, ra, "action=process_reduced")}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsBpfMapUsed(t, tt, []metricdata.DataPoint[int64]{point(8192, ra)}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsBackgroundCPU(t, tt, []metricdata.DataPoint[float64]{
		part(0, ra, "work=processes"), part(1.5, ra, "work=unwind_rows"), part(0, ra, "work=symbols"),
	}, opt)
	metadatatest.AssertEqualReceiverCustomLabelsBackgroundWaiting(t, tt, []metricdata.DataPoint[int64]{
		point(0, ra, "work=processes"), point(2, ra, "work=unwind_rows"),
	}, opt)
	used := make([]metricdata.DataPoint[int64], 0, budget.NumParts)
	for p := range budget.Part(budget.NumParts) {
		value := int64(0)
		if p == budget.OfBatches {
			value = 4096
		}
		used = append(used, point(value, ra, "part="+p.String()))
	}
	metadatatest.AssertEqualReceiverCustomLabelsMemoryUsed(t, tt, used, opt)
	require.NoError(t, a.close())
}

// The documented values of the attributes are the ones that are emitted.
func TestTelemetryAttributeNames(t *testing.T) {
	md := readMetadata(t)
	require.Equal(t, md["action"], names(labels.NumActions, func(i int) string { return labels.Action(i).String() }))
	require.Equal(t, md["budget"], names(labels.NumBudgets, func(i int) string { return labels.Budget(i).String() }))
	require.Equal(t, md["type_conflict_result"], names(pipeline.NumTypeConflictResults, func(i int) string { return pipeline.TypeConflictResult(i).String() }))
	require.Equal(t, md["collection_result"], names(pipeline.NumCollectionResults, func(i int) string { return pipeline.CollectionResult(i).String() }))
	require.Equal(t, md["series_lost"], names(pipeline.NumSeriesLost, func(i int) string { return pipeline.SeriesLost(i).String() }))
	require.Equal(t, md["drop_reason"], names(pipeline.NumDropReasons, func(i int) string { return pipeline.DropReason(i).String() }))
	require.Equal(t, md["profile"], names(pipeline.NumStreams, func(i int) string { return pipeline.Kind(i).String() }))
	require.Equal(t, md["hang_kind"], names(pipeline.NumHangKinds, func(i int) string { return pipeline.HangKind(i).String() }))
	require.Equal(t, md["runtime_result"], names(pipeline.NumRuntimeResults, func(i int) string { return pipeline.RuntimeResult(i).String() }))
	require.Equal(t, md["symbol_problem"], names(pipeline.NumSymbolProblems, func(i int) string { return pipeline.SymbolProblem(i).String() }))
	require.Equal(t, md["unwind_result"], names(pipeline.NumUnwindResults, func(i int) string { return pipeline.UnwindResult(i).String() }))
	require.Equal(t, md["filter_reason"], names(pipeline.NumFilterReasons, func(i int) string { return pipeline.FilterReason(i).String() }))
	require.Equal(t, md["limit"], names(pipeline.NumLimits, func(i int) string { return pipeline.Limit(i).String() }))
	require.Equal(t, md["limit_action"], names(pipeline.NumLimitActions, func(i int) string { return pipeline.LimitAction(i).String() }))
	require.Equal(t, md["memory_part"], names(budget.NumParts, func(i int) string { return budget.Part(i).String() }))
	require.Equal(t, md["background_work"], names(budget.NumWork, func(i int) string { return budget.Work(i).String() }))
	require.Equal(t, md["kind"], names(labels.NumAnomalies, func(i int) string { return labels.Anomaly(i).String() }))
	require.Equal(t, md["outcome"], names(record.NumOutcomes, func(i int) string { return record.Outcome(i).String() }))
	require.Equal(t, md["abi"], names(record.NumABIs-1, func(i int) string { return record.ABI(i + 1).String() }))
}

func names(n int, name func(int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = name(i)
	}
	return out
}

// readMetadata returns the enum of each attribute in metadata.yaml.
func readMetadata(t *testing.T) map[string][]string {
	t.Helper()
	conf, err := confmaptest.LoadConf("metadata.yaml")
	require.NoError(t, err)
	sub, err := conf.Sub("attributes")
	require.NoError(t, err)
	var attrs map[string]struct {
		Enum []string `mapstructure:"enum"`
	}
	require.NoError(t, sub.Unmarshal(&attrs, confmap.WithIgnoreUnused()))
	enums := make(map[string][]string)
	for name, a := range attrs {
		enums[name] = a.Enum
	}
	return enums
}
