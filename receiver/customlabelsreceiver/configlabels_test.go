package customlabelsreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// A condition of a rule that is there without a value does not match all: what another rule drops would be kept.
func TestRuleConditionsWithoutValue(t *testing.T) {
	rules := func(rule map[string]any) error {
		return confmap.NewFromStringMap(map[string]any{
			"labels": map[string]any{"rules": []any{map[string]any{"action": "drop"}, rule}},
		}).Unmarshal(createDefaultConfig())
	}
	for key, values := range map[string][]any{
		"key": {nil, ""}, "source": {nil, ""}, "executable": {nil, ""}, "uid": {nil, "", []any{}, []any{1, nil}, []any{""}},
	} {
		for _, value := range values {
			err := rules(map[string]any{"action": "keep", key: value})
			require.ErrorContains(t, err, key+" must have a value", "%v", value)
			require.ErrorContains(t, err, "rules[1]", "it is told which one")
		}
	}
	require.NoError(t, rules(map[string]any{"action": "keep", "key": "a", "source": "go_labels", "executable": "/x", "uid": []any{0}, "to": ""}))
	require.ErrorContains(t, resolved(t, "labels: {rules: [{action: keep, uid: [\"${env:NOT_SET}\"]}]}").Unmarshal(createDefaultConfig()),
		"uid must have a value")
}

// A rule that hides something applies only where no rule before it takes its labels.
func TestRuleOrder(t *testing.T) {
	cut, hide := LabelRule{Key: "*", Action: "cap_value_bytes", Limit: 64}, LabelRule{Key: "*token*", Action: "drop"}
	c := createDefaultConfig().(*Config)
	c.Labels.Rules = []LabelRule{cut, hide}
	require.ErrorContains(t, c.Validate(), "labels::rules::1 would never apply")
	c.Labels.Rules = []LabelRule{hide, cut}
	require.NoError(t, c.Validate())
}
