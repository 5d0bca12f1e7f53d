package customlabelsreceiver

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

type schema struct {
	Type        string
	Description string
	Default     any
	Minimum     *float64
	Maximum     *float64
	MaxLength   *int
	MaxItems    *int
	Items       *schema
	Enum        []string
	Properties  map[string]schema
}

// defaults returns the keys of the schema with their default values.
func (s schema) defaults() map[string]any {
	out := make(map[string]any)
	for key, p := range s.Properties {
		if p.Properties != nil {
			out[key] = p.defaults()
		} else {
			out[key] = p.Default
		}
	}
	return out
}

func readSchema(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("config.schema.json")
	require.NoError(t, err)
	var s schema
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// keys are those of the schema that are no sections, separated as confmap does.
func (s schema) keys(prefix string) (keys []string) {
	for key, p := range s.Properties {
		if p.Properties != nil {
			keys = append(keys, p.keys(prefix+key+confmap.KeyDelimiter)...)
		} else {
			keys = append(keys, prefix+key)
		}
	}
	return keys
}

// The schema's defaults are the defaults, and it knows every key.
func TestSchemaDefaults(t *testing.T) {
	s := readSchema(t)
	defaults := s.defaults()
	require.Equal(t, map[string]any{"threshold": 0.01, "minimum": "1ms"}, defaults["off_cpu"])
	delete(defaults, "off_cpu") // absent
	cfg := new(Config)
	require.NoError(t, withoutNone(confmap.NewFromStringMap(defaults)).Unmarshal(cfg))
	cfg.OffCPU = configoptional.Default(NewDefaultOffCPU())
	require.Equal(t, createDefaultConfig(), cfg)

	everything, err := load(t, "custom_labels/everything")
	require.NoError(t, err)
	everything.Labels.Prefix = "p." // what is empty is not marshaled
	conf := confmap.New()
	require.NoError(t, conf.Marshal(everything))
	require.ElementsMatch(t, s.keys(""), conf.AllKeys())
}

// The schema's bounds are those of Validate: each passes, and one step outside does not.
func TestSchemaBounds(t *testing.T) {
	var check func(path string, s schema)
	check = func(path string, s schema) {
		for key, p := range s.Properties {
			full := path + key
			if p.Properties != nil {
				check(full+confmap.KeyDelimiter, p)
			}
			try := func(value any) error {
				return tryKey(t, full, value)
			}
			if p.Minimum != nil {
				require.NoError(t, try(*p.Minimum), full)
				require.ErrorContains(t, try(*p.Minimum-1), key)
			}
			if p.Maximum != nil {
				require.NoError(t, try(*p.Maximum), full)
				require.ErrorContains(t, try(*p.Maximum+1), key)
			}
			for _, value := range p.Enum {
				require.NoError(t, try(value), full)
			}
			if p.Type == "integer" {
				require.NotNil(t, p.Minimum, full)
				require.NotNil(t, p.Maximum, full)
			}
		}
	}
	check("", readSchema(t))
}

// The schema of selectors has their fields.
func TestSchemaTargets(t *testing.T) {
	of := readSchema(t).Properties["targets"].Properties
	uid, conf := int64(1), confmap.New()
	require.NoError(t, conf.Marshal(&TargetSelector{Executable: "e", Cgroup: "c", CgroupID: 1, ContainerID: "c", UID: &uid, PID: 1}))
	for _, list := range []string{"include", "exclude"} {
		require.Equal(t, targets.MaxSelectors, *of[list].MaxItems)
		require.ElementsMatch(t, conf.AllKeys(), slices.Collect(maps.Keys(of[list].Items.Properties)))
	}
}

// The schema of rules has their fields, and says their actions and sources.
func TestSchemaRules(t *testing.T) {
	s := readSchema(t)
	of := s.Properties["labels"].Properties["rules"]
	conf := confmap.New()
	require.NoError(t, conf.Marshal(&LabelRule{
		Name: "n", Key: "k", Source: "custom_labels_v0", Executable: "e", UID: []int64{1}, Action: "drop", To: "t", Limit: 1,
	}))
	require.Equal(t, labels.MaxRules, *of.MaxItems)
	require.ElementsMatch(t, conf.AllKeys(), slices.Collect(maps.Keys(of.Items.Properties)))
	for source := range ruleSources() {
		require.Contains(t, of.Items.Properties["source"].Description, source)
	}
	for _, action := range names(labels.NumActions, func(i int) string { return labels.Action(i).String() }) {
		require.Contains(t, of.Items.Properties["action"].Description, action)
	}
	require.Equal(t, maxIDKeys, *s.Properties["labels"].Properties["trace_id_keys"].MaxItems)
	require.Equal(t, maxIDKeys, *s.Properties["labels"].Properties["span_id_keys"].MaxItems)
	require.Equal(t, maxMetricLabelKeys, *s.Properties["metrics"].Properties["label_keys"].MaxItems)
}
