package customlabelsreceiver

import (
	"context"
	"fmt"
	"reflect"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"go.opentelemetry.io/collector/receiver"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// telemetry publishes snapshots as the collector's metrics, whenever those are
// collected. One callback observes all instruments, so that the values of one
// collection belong together.
type telemetry struct {
	instruments  *metadata.TelemetryBuilder
	registration metric.Registration
	read         func() pipeline.Snapshot
	attrs        attributeSets
}

// attributeSets are made once: a collection allocates none.
type attributeSets struct {
	own         attribute.KeyValue
	receiver    metric.ObserveOption
	rules       []metric.ObserveOption
	streams     [pipeline.NumStreams]streamAttributes
	labelReads  [record.NumABIs][record.NumOutcomes]metric.ObserveOption
	userStacks  [record.NumOutcomes]metric.ObserveOption
	collections [pipeline.NumCollectionResults]metric.ObserveOption
	anomalies   [labels.NumAnomalies]metric.ObserveOption
	unwindFiles [pipeline.NumUnwindResults]metric.ObserveOption
	runtimes    [pipeline.NumRuntimeResults]metric.ObserveOption
	symbols     [pipeline.NumSymbolProblems]metric.ObserveOption
	hanging     [pipeline.NumHangKinds]metric.ObserveOption
	loadErrors  [pipeline.NumLoadErrorReasons]metric.ObserveOption

	limits       [pipeline.NumLimits]metric.ObserveOption
	limitActions [pipeline.NumLimitActions]metric.ObserveOption
	memory       [budget.NumParts]metric.ObserveOption
	background   [budget.NumWork]metric.ObserveOption
}

// streamAttributes are those of one kind of profile.
type streamAttributes struct {
	own      attribute.KeyValue
	all      metric.ObserveOption
	filtered [pipeline.NumFilterReasons]metric.ObserveOption
	dropped  [pipeline.NumDropReasons]metric.ObserveOption
}

// newTelemetry registers the instruments. read is called on a goroutine of the
// collector until close has returned; it must not wait for a lock that is held
// while close is called.
func newTelemetry(set receiver.Settings, cfg *Config, read func() pipeline.Snapshot) (*telemetry, error) {
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create instruments: %w", err)
	}
	t := &telemetry{instruments: b, read: read, attrs: newAttributeSets(set.ID.String())}
	t.attrs.rules = ruleAttributes(set.ID.String(), &cfg.Labels)
	t.registration, err = metadata.Meter(set.TelemetrySettings).RegisterCallback(t.observe, observables(b)...)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return t, nil
}

// observables are all instruments.
func observables(b *metadata.TelemetryBuilder) (all []metric.Observable) {
	v := reflect.ValueOf(b).Elem()
	for i := range v.NumField() {
		if field := v.Field(i); field.CanInterface() {
			all = append(all, field.Interface().(metric.Observable))
		}
	}
	return all
}

// close ends the publication; read is not called afterwards.
func (t *telemetry) close() error {
	err := t.registration.Unregister()
	t.instruments.Shutdown()
	if err != nil {
		return fmt.Errorf("unregister metrics: %w", err)
	}
	return nil
}

func (t *telemetry) observe(_ context.Context, o metric.Observer) error {
	s := t.read()
	b, a := t.instruments, &t.attrs
	for kind := range s.Streams {
		if of := &s.Streams[kind]; of.Enabled {
			t.observeStream(o, &s, of)
		}
	}
	if s.Metering.Enabled {
		t.observeMetering(o, &s)
	}
	t.observeUsers(o, &s)
	t.observeLabels(o, &s)

	for abi := record.ABINone + 1; abi < record.NumABIs; abi++ {
		observeSeen(o, b.ReceiverCustomLabelsLabelReads, s.LabelReads[abi][:], a.labelReads[abi][:])
	}
	observeSeen(o, b.ReceiverCustomLabelsUserStacks, s.UserStacks[:], a.userStacks[:])
	observeSeen(o, b.ReceiverCustomLabelsLabelAnomalies, s.Anomalies[:], a.anomalies[:])
	o.ObserveInt64(b.ReceiverCustomLabelsDroppedProcessEvents, s.DroppedProcessEvents, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsDroppedContextAnnouncements, s.DroppedAnnouncements, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessContextErrors, s.ContextErrors, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessContextProcesses, s.ContextProcesses, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessContextReads, s.ContextReads, a.receiver)
	observeAll(o, b.ReceiverCustomLabelsProcessLoadErrors, s.ProcessLoadErrors[:], a.loadErrors[:])
	o.ObserveInt64(b.ReceiverCustomLabelsTrackedProcesses, s.TrackedProcesses, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsLabelSourceProcesses, s.LabelSourceProcesses, a.receiver)
	observeSeen(o, b.ReceiverCustomLabelsRuntimeResults, s.RuntimeResults[:], a.runtimes[:])
	observeSeen(o, b.ReceiverCustomLabelsSymbolProblems, s.SymbolProblems[:], a.symbols[:])
	observeAll(o, b.ReceiverCustomLabelsHanging, s.Hanging[:], a.hanging[:])
	observeSeen(o, b.ReceiverCustomLabelsUnwindFiles, s.UnwindFiles[:], a.unwindFiles[:])
	o.ObserveInt64(b.ReceiverCustomLabelsUnwindTables, s.UnwindTables, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsUnwindUsed, s.UnwindBytes, a.receiver)
	t.observeLimits(o, &s)
	return nil
}

func (t *telemetry) observeLimits(o metric.Observer, s *pipeline.Snapshot) {
	b, a := t.instruments, &t.attrs
	o.ObserveInt64(b.ReceiverCustomLabelsBpfMapUsed, s.BPFMapBytes, a.receiver)
	for l, part := range s.LimitUsed {
		o.ObserveFloat64(b.ReceiverCustomLabelsLimitUsed, part, a.limits[l])
	}
	observeSeen(o, b.ReceiverCustomLabelsLimitActions, s.LimitActions[:], a.limitActions[:])
	observeAll(o, b.ReceiverCustomLabelsMemoryUsed, s.Memory[:], a.memory[:])
	for w, seconds := range s.Background {
		o.ObserveFloat64(b.ReceiverCustomLabelsBackgroundCPU, seconds, a.background[w])
	}
	observeAll(o, b.ReceiverCustomLabelsBackgroundWaiting, s.BackgroundLeft[:], a.background[:budget.Names])
}

// observeStream tells what became of the hits of one kind of profile.
func (t *telemetry) observeStream(o metric.Observer, all *pipeline.Snapshot, s *pipeline.StreamSnapshot) {
	b, a := t.instruments, &t.attrs.streams[s.Kind]
	o.ObserveInt64(b.ReceiverCustomLabelsHits, s.Hits, a.all)
	o.ObserveInt64(b.ReceiverCustomLabelsEmittedSamples, s.Emitted, a.all)
	observeAll(o, b.ReceiverCustomLabelsFilteredSamples, s.Filtered[:pipeline.FilterReasons(s.Kind)], a.filtered[:])
	observeAll(o, b.ReceiverCustomLabelsDroppedSamples, s.Dropped[:pipeline.DropReasons(s.Kind)], a.dropped[:])
	o.ObserveInt64(b.ReceiverCustomLabelsPendingSamples, s.Pending(), a.all)
	o.ObserveInt64(b.ReceiverCustomLabelsRingBufferUsed, s.RingBytes, a.all)
	for r := range s.UserDropped {
		reason := attribute.String("reason", pipeline.UserDropReason(r).String())
		t.observeByUser(o, all.Users, b.ReceiverCustomLabelsUserDroppedSamples, &s.UserDropped[r], a.own, reason)
	}
	if all.Metering.Enabled {
		o.ObserveInt64(b.ReceiverCustomLabelsMetricSamples, s.Metered, a.all)
	}
}

// observeMetering tells of the metrics, where the receiver makes any.
func (t *telemetry) observeMetering(o metric.Observer, all *pipeline.Snapshot) {
	b, a, s := t.instruments, &t.attrs, &all.Metering
	o.ObserveInt64(b.ReceiverCustomLabelsMetricSeries, s.Series, a.receiver)
	observeAll(o, b.ReceiverCustomLabelsMetricCollections, s.Collections[:], a.collections[:])
	for l := range s.Lost {
		t.observeByUser(o, all.Users, b.ReceiverCustomLabelsMetricOverflow, &s.Lost[l], attribute.String("lost", pipeline.SeriesLost(l).String()))
	}
}

// observeAll passes on values of which each has attributes of its own.
func observeAll(o metric.Observer, instrument metric.Int64Observable, values []int64, attrs []metric.ObserveOption) {
	for i, n := range values {
		o.ObserveInt64(instrument, n, attrs[i])
	}
}

// observeSeen is observeAll without what has not happened yet: most combinations of
// attributes never do.
func observeSeen(o metric.Observer, counter metric.Int64ObservableCounter, values []int64, attrs []metric.ObserveOption) {
	for i, n := range values {
		if n != 0 {
			o.ObserveInt64(counter, n, attrs[i])
		}
	}
}

func newAttributeSets(receiverID string) attributeSets {
	own := attribute.String("receiver", receiverID)
	sets := attributeSets{own: own, receiver: metric.WithAttributeSet(attribute.NewSet(own))}
	for kind := range sets.streams {
		s := &sets.streams[kind]
		s.own = attribute.String("profile", pipeline.Kind(kind).String())
		s.all = metric.WithAttributeSet(attribute.NewSet(own, s.own))
		attributesOf[pipeline.FilterReason](s.filtered[:], "reason", own, s.own)
		attributesOf[pipeline.DropReason](s.dropped[:], "reason", own, s.own)
	}
	attributesOf[pipeline.CollectionResult](sets.collections[:], "result", own)
	attributesOf[pipeline.RuntimeResult](sets.runtimes[:], "result", own)
	attributesOf[pipeline.SymbolProblem](sets.symbols[:], "problem", own)
	attributesOf[pipeline.HangKind](sets.hanging[:], "kind", own)
	attributesOf[pipeline.LoadErrorReason](sets.loadErrors[:], "reason", own)
	attributesOf[pipeline.UnwindResult](sets.unwindFiles[:], "result", own)
	attributesOf[pipeline.Limit](sets.limits[:], "limit", own)
	attributesOf[pipeline.LimitAction](sets.limitActions[:], "action", own)
	attributesOf[budget.Part](sets.memory[:], "part", own)
	attributesOf[budget.Work](sets.background[:], "work", own)
	attributesOf[labels.Anomaly](sets.anomalies[:], "kind", own)
	attributesOf[record.Outcome](sets.userStacks[:], "outcome", own)
	for abi := range sets.labelReads {
		attributesOf[record.Outcome](sets.labelReads[abi][:], "outcome", own, attribute.String("abi", record.ABI(abi).String()))
	}
	return sets
}

// attributesOf makes the attributes of all values of an enum.
func attributesOf[E interface {
	~int | ~uint8
	fmt.Stringer
}](sets []metric.ObserveOption, key string, others ...attribute.KeyValue) {
	for i := range sets {
		sets[i] = metric.WithAttributeSet(attribute.NewSet(append(others, attribute.String(key, E(i).String()))...))
	}
}
