package customlabelsreceiver

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/pipeline"
)

// Attributes of metrics by user.
const (
	attrUserID     = "process.real_user.id" // in the init user namespace
	attrUserOthers = "user.other"           // true, instead of an id: the users without a series of their own
)

// userAttribute returns what tells a series from others.
func userAttribute(users []uint32, series int) attribute.KeyValue {
	if series >= len(users) {
		return attribute.Bool(attrUserOthers, true)
	}
	return attribute.Int64(attrUserID, int64(users[series]))
}

// observeByUser passes on the values that are not 0.
func (t *telemetry) observeByUser(
	o metric.Observer, users []uint32, instrument metric.Int64Observable, values *pipeline.ByUser, attrs ...attribute.KeyValue,
) {
	for series, n := range values {
		if n != 0 {
			set := attribute.NewSet(append(attrs, userAttribute(users, series), t.attrs.own)...)
			o.ObserveInt64(instrument, n, metric.WithAttributeSet(set))
		}
	}
}

func (t *telemetry) observeUsers(o metric.Observer, s *pipeline.Snapshot) {
	b := t.instruments
	overflow := b.ReceiverCustomLabelsUserEntryOverflow
	t.observeByUser(o, s.Users, overflow, &s.LostLabels, attribute.String("lost", "labels"))
	t.observeByUser(o, s.Users, overflow, &s.LostStacks, attribute.String("lost", "stacks"))
	t.observeByUser(o, s.Users, overflow, &s.LostFrames, attribute.String("lost", "frames"))
}

// ruleAttributes are those of each rule's matches.
func ruleAttributes(receiverID string, cfg *Labels) (sets []metric.ObserveOption) {
	for i, name := range cfg.ruleNames() {
		sets = append(sets, metric.WithAttributeSet(attribute.NewSet(
			attribute.String("receiver", receiverID),
			attribute.String("rule", name),
			attribute.String("action", cfg.Rules[i].Action),
		)))
	}
	return sets
}

func (t *telemetry) observeLabels(o metric.Observer, all *pipeline.Snapshot) {
	b, a, s := t.instruments, &t.attrs, &all.Labels
	for i := range s.Overflow {
		budget := attribute.String("budget", labels.Budget(i).String())
		t.observeByUser(o, all.Users, b.ReceiverCustomLabelsOverflowSamples, &s.Overflow[i], budget)
		for series, part := range &s.BudgetUsed[i] {
			if part != 0 {
				set := attribute.NewSet(budget, userAttribute(all.Users, series), t.attrs.own)
				o.ObserveFloat64(b.ReceiverCustomLabelsLabelBudgetUsed, part, metric.WithAttributeSet(set))
			}
		}
	}
	for i := range s.TypeConflicts {
		result := attribute.String("result", pipeline.TypeConflictResult(i).String())
		t.observeByUser(o, all.Users, b.ReceiverCustomLabelsTypeConflicts, &s.TypeConflicts[i], result)
	}
	o.ObserveInt64(b.ReceiverCustomLabelsSharedBudgetSamples, s.OthersSamples, a.receiver)
	observeAll(o, b.ReceiverCustomLabelsRuleMatches, s.RuleMatches, a.rules)
}
