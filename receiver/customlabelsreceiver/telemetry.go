package customlabelsreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"go.opentelemetry.io/collector/receiver"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver/internal/metadata"
)

// telemetry publishes snapshots as the collector's metrics, whenever those are
// collected. One callback observes all instruments, so that the values of one
// collection belong together.
type telemetry struct {
	instruments  *metadata.TelemetryBuilder
	registration metric.Registration
	read         func(*snapshot)
	attrs        attributeSets
}

// attributeSets are made once: a collection allocates none.
type attributeSets struct {
	own         attribute.KeyValue
	receiver    metric.ObserveOption
	rules       []metric.ObserveOption
	filtered    [numFilterReasons]metric.ObserveOption
	dropped     [numDropReasons]metric.ObserveOption
	labelReads  [labels.NumABIs][labels.NumOutcomes]metric.ObserveOption
	userStacks  [labels.NumOutcomes]metric.ObserveOption
	collections [numCollectionResults]metric.ObserveOption
	anomalies   [numAnomalies]metric.ObserveOption
	unwindFiles [numUnwindResults]metric.ObserveOption
	symbols     [numSymbolProblems]metric.ObserveOption
	hanging     [numHangKinds]metric.ObserveOption

	limits       [numLimits]metric.ObserveOption
	limitActions [numLimitActions]metric.ObserveOption
	memory       [budget.NumParts]metric.ObserveOption
	background   [budget.NumWork]metric.ObserveOption

	offCPUFiltered [numOffCPUFilterReasons]metric.ObserveOption
	offCPUDropped  [numOffCPUDropReasons]metric.ObserveOption
}

// newTelemetry registers the instruments. read is called on a goroutine of the
// collector until close has returned; it must not wait for a lock that is held
// while close is called.
func newTelemetry(set receiver.Settings, cfg *Config, read func(*snapshot)) (*telemetry, error) {
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create instruments: %w", err)
	}
	t := &telemetry{
		instruments: b, read: read, attrs: newAttributeSets(set.ID.String()),
	}
	t.attrs.rules = ruleAttributes(set.ID.String(), &cfg.Labels)
	t.registration, err = metadata.Meter(set.TelemetrySettings).RegisterCallback(t.observe,
		b.ReceiverCustomLabelsBackgroundCPU,
		b.ReceiverCustomLabelsBackgroundWaiting,
		b.ReceiverCustomLabelsBpfMapUsed,
		b.ReceiverCustomLabelsDroppedProcessEvents,
		b.ReceiverCustomLabelsDroppedSamples,
		b.ReceiverCustomLabelsEmittedSamples,
		b.ReceiverCustomLabelsFilteredSamples,
		b.ReceiverCustomLabelsHanging,
		b.ReceiverCustomLabelsHits,
		b.ReceiverCustomLabelsLabelAnomalies,
		b.ReceiverCustomLabelsLabelBudgetUsed,
		b.ReceiverCustomLabelsLabelReads,
		b.ReceiverCustomLabelsLabelSourceProcesses,
		b.ReceiverCustomLabelsLabelUsers,
		b.ReceiverCustomLabelsLimitActions,
		b.ReceiverCustomLabelsLimitUsed,
		b.ReceiverCustomLabelsMemoryUsed,
		b.ReceiverCustomLabelsMetricCollections,
		b.ReceiverCustomLabelsMetricOverflow,
		b.ReceiverCustomLabelsMetricSamples,
		b.ReceiverCustomLabelsMetricSeries,
		b.ReceiverCustomLabelsOffCPUAwayBytes,
		b.ReceiverCustomLabelsOffCPUDroppedSwitches,
		b.ReceiverCustomLabelsOffCPUEmittedSwitches,
		b.ReceiverCustomLabelsOffCPUFilteredSwitches,
		b.ReceiverCustomLabelsOffCPUMetricSwitches,
		b.ReceiverCustomLabelsOffCPUPendingSwitches,
		b.ReceiverCustomLabelsOffCPURingBufferUsed,
		b.ReceiverCustomLabelsOffCPUSwitches,
		b.ReceiverCustomLabelsOffCPUUserDroppedSwitches,
		b.ReceiverCustomLabelsOverflowSamples,
		b.ReceiverCustomLabelsPendingSamples,
		b.ReceiverCustomLabelsProcessContextErrors,
		b.ReceiverCustomLabelsProcessContextProcesses,
		b.ReceiverCustomLabelsProcessContextReads,
		b.ReceiverCustomLabelsProcessLoadErrors,
		b.ReceiverCustomLabelsRingBufferUsed,
		b.ReceiverCustomLabelsRuleMatches,
		b.ReceiverCustomLabelsSharedBudgetSamples,
		b.ReceiverCustomLabelsSymbolProblems,
		b.ReceiverCustomLabelsSymbolUsed,
		b.ReceiverCustomLabelsTrackedProcesses,
		b.ReceiverCustomLabelsTypeConflicts,
		b.ReceiverCustomLabelsUnwindFiles,
		b.ReceiverCustomLabelsUnwindTables,
		b.ReceiverCustomLabelsUnwindUsed,
		b.ReceiverCustomLabelsUserDroppedSamples,
		b.ReceiverCustomLabelsUserEntryOverflow,
		b.ReceiverCustomLabelsUserStacks,
	)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return t, nil
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
	var s snapshot
	t.read(&s)

	b, a := t.instruments, &t.attrs
	o.ObserveInt64(b.ReceiverCustomLabelsHits, s.hits, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsEmittedSamples, s.emitted, a.receiver)
	for reason, n := range s.filtered {
		o.ObserveInt64(b.ReceiverCustomLabelsFilteredSamples, n, a.filtered[reason])
	}
	for reason, n := range s.dropped {
		o.ObserveInt64(b.ReceiverCustomLabelsDroppedSamples, n, a.dropped[reason])
	}
	o.ObserveInt64(b.ReceiverCustomLabelsPendingSamples, s.pending(), a.receiver)
	if s.offCPU.enabled {
		t.observeOffCPU(o, &s.offCPU)
	}
	if s.metering.enabled {
		t.observeMetering(o, &s)
	}
	if s.users != nil {
		t.observeUsers(o, &s)
		t.observeLabels(o, &s)
	}

	for abi := labels.ABINone + 1; abi < labels.NumABIs; abi++ {
		for outcome, n := range s.labelReads[abi] {
			observeSeen(o, b.ReceiverCustomLabelsLabelReads, n, a.labelReads[abi][outcome])
		}
	}
	for outcome, n := range s.userStacks {
		observeSeen(o, b.ReceiverCustomLabelsUserStacks, n, a.userStacks[outcome])
	}
	for kind, n := range s.anomalies {
		observeSeen(o, b.ReceiverCustomLabelsLabelAnomalies, n, a.anomalies[kind])
	}
	o.ObserveInt64(b.ReceiverCustomLabelsDroppedProcessEvents, s.droppedProcessEvents, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessContextErrors, s.contextErrors, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessContextProcesses, s.contextProcesses, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessContextReads, s.contextReads, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsProcessLoadErrors, s.processLoadErrors, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsRingBufferUsed, s.ringBufferUsedBytes, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsTrackedProcesses, s.trackedProcesses, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsLabelSourceProcesses, s.labelSourceProcesses, a.receiver)
	for r, n := range s.symbolProblems {
		observeSeen(o, b.ReceiverCustomLabelsSymbolProblems, n, a.symbols[r])
	}
	for k, n := range s.hanging {
		o.ObserveInt64(b.ReceiverCustomLabelsHanging, n, a.hanging[k])
	}
	o.ObserveInt64(b.ReceiverCustomLabelsSymbolUsed, s.symbolBytes, a.receiver)
	for r, n := range s.unwindFiles {
		observeSeen(o, b.ReceiverCustomLabelsUnwindFiles, n, a.unwindFiles[r])
	}
	o.ObserveInt64(b.ReceiverCustomLabelsUnwindTables, s.unwindTables, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsUnwindUsed, s.unwindBytes, a.receiver)
	t.observeLimits(o, &s)
	return nil
}

func (t *telemetry) observeLimits(o metric.Observer, s *snapshot) {
	b, a := t.instruments, &t.attrs
	o.ObserveInt64(b.ReceiverCustomLabelsBpfMapUsed, s.bpfMapBytes, a.receiver)
	for l, part := range s.limitUsed {
		o.ObserveFloat64(b.ReceiverCustomLabelsLimitUsed, part, a.limits[l])
	}
	for l, n := range s.limitActions {
		observeSeen(o, b.ReceiverCustomLabelsLimitActions, n, a.limitActions[l])
	}
	for p, n := range s.memory {
		o.ObserveInt64(b.ReceiverCustomLabelsMemoryUsed, n, a.memory[p])
	}
	for w, seconds := range s.background {
		o.ObserveFloat64(b.ReceiverCustomLabelsBackgroundCPU, seconds, a.background[w])
		o.ObserveInt64(b.ReceiverCustomLabelsBackgroundWaiting, s.backgroundLeft[w], a.background[w])
	}
}

func (t *telemetry) observeOffCPU(o metric.Observer, s *offCPUSnapshot) {
	b, a := t.instruments, &t.attrs
	o.ObserveInt64(b.ReceiverCustomLabelsOffCPUSwitches, s.switches, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsOffCPUEmittedSwitches, s.emitted, a.receiver)
	for reason, n := range s.filtered {
		o.ObserveInt64(b.ReceiverCustomLabelsOffCPUFilteredSwitches, n, a.offCPUFiltered[reason])
	}
	for reason, n := range s.dropped {
		o.ObserveInt64(b.ReceiverCustomLabelsOffCPUDroppedSwitches, n, a.offCPUDropped[reason])
	}
	o.ObserveInt64(b.ReceiverCustomLabelsOffCPUPendingSwitches, s.pending(), a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsOffCPURingBufferUsed, s.ringBytes, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsOffCPUAwayBytes, s.awayBytes, a.receiver)
}

func (t *telemetry) observeUsers(o metric.Observer, s *snapshot) {
	for r := range s.userDropped {
		reason := attribute.String("reason", userDropReason(r).String())
		s.users.observe(o, t.instruments.ReceiverCustomLabelsUserDroppedSamples, &s.userDropped[r], t.attrs.own, reason)
		s.users.observe(o, t.instruments.ReceiverCustomLabelsOffCPUUserDroppedSwitches, &s.offCPU.userDropped[r], t.attrs.own, reason)
	}
	overflow := t.instruments.ReceiverCustomLabelsUserEntryOverflow
	s.users.observe(o, overflow, &s.lostLabels, t.attrs.own, attribute.String("lost", "labels"))
	s.users.observe(o, overflow, &s.lostStacks, t.attrs.own, attribute.String("lost", "stacks"))
}

// observeSeen leaves out what has not happened yet: most combinations of
// attributes never do.
func observeSeen(o metric.Observer, counter metric.Int64ObservableCounter, n int64, attrs metric.ObserveOption) {
	if n != 0 {
		o.ObserveInt64(counter, n, attrs)
	}
}

func newAttributeSets(receiverID string) attributeSets {
	own := attribute.String("receiver", receiverID)
	with := func(kvs ...attribute.KeyValue) metric.ObserveOption {
		return metric.WithAttributeSet(attribute.NewSet(append(kvs, own)...))
	}
	sets := attributeSets{own: own, receiver: with()}
	for r := range sets.filtered {
		sets.filtered[r] = with(attribute.String("reason", filterReason(r).String()))
	}
	for r := range sets.dropped {
		sets.dropped[r] = with(attribute.String("reason", dropReason(r).String()))
	}
	for r := range sets.collections {
		sets.collections[r] = with(attribute.String("result", collectionResult(r).String()))
	}
	for r := range sets.symbols {
		sets.symbols[r] = with(attribute.String("problem", symbolProblem(r).String()))
	}
	for k := range sets.hanging {
		sets.hanging[k] = with(attribute.String("kind", hangKind(k).String()))
	}
	for r := range sets.unwindFiles {
		sets.unwindFiles[r] = with(attribute.String("result", unwindResult(r).String()))
	}
	for r := range sets.offCPUFiltered {
		sets.offCPUFiltered[r] = with(attribute.String("reason", offCPUFilterReason(r).String()))
	}
	for r := range sets.offCPUDropped {
		sets.offCPUDropped[r] = with(attribute.String("reason", offCPUDropReason(r).String()))
	}
	for l := range sets.limits {
		sets.limits[l] = with(attribute.String("limit", limit(l).String()))
	}
	for l := range sets.limitActions {
		sets.limitActions[l] = with(attribute.String("action", limitAction(l).String()))
	}
	for p := range sets.memory {
		sets.memory[p] = with(attribute.String("part", budget.Part(p).String()))
	}
	for w := range sets.background {
		sets.background[w] = with(attribute.String("work", budget.Work(w).String()))
	}
	for k := range sets.anomalies {
		sets.anomalies[k] = with(attribute.String("kind", anomaly(k).String()))
	}
	for o := range sets.userStacks {
		outcome := attribute.String("outcome", labels.Outcome(o).String())
		sets.userStacks[o] = with(outcome)
		for abi := range sets.labelReads {
			sets.labelReads[abi][o] = with(outcome, attribute.String("abi", labels.ABI(abi).String()))
		}
	}
	return sets
}
