package customlabelsreceiver

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
)

// ruleAttributes are those of each rule's matches.
func ruleAttributes(receiverID string, cfg *LabelsConfig) (sets []metric.ObserveOption) {
	for i, name := range cfg.ruleNames() {
		sets = append(sets, metric.WithAttributeSet(attribute.NewSet(
			attribute.String("receiver", receiverID),
			attribute.String("rule", name),
			attribute.String("action", cfg.Rules[i].Action),
		)))
	}
	return sets
}

func (t *telemetry) observeLabels(o metric.Observer, all *snapshot) {
	b, a, s := t.instruments, &t.attrs, &all.labels
	for i := range s.overflow {
		budget := attribute.String("budget", labels.Budget(i).String())
		all.users.observe(o, b.ReceiverCustomLabelsOverflowSamples, &s.overflow[i], a.own, budget)
		all.users.observe(o, b.ReceiverCustomLabelsLabelBudgetUsed, &s.budgetUsed[i], a.own, budget)
	}
	for i := range s.typeConflicts {
		result := attribute.String("result", typeConflictResult(i).String())
		all.users.observe(o, b.ReceiverCustomLabelsTypeConflicts, &s.typeConflicts[i], a.own, result)
	}
	o.ObserveInt64(b.ReceiverCustomLabelsLabelUsers, s.users, a.receiver)
	o.ObserveInt64(b.ReceiverCustomLabelsSharedBudgetSamples, s.othersSamples, a.receiver)
	for i, n := range s.ruleMatches {
		o.ObserveInt64(b.ReceiverCustomLabelsRuleMatches, n, a.rules[i])
	}
}
