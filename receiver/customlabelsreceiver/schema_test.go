package customlabelsreceiver

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/targets"
)

type schema struct {
	Type       string
	Default    any
	Minimum    *int
	Maximum    *int
	MaxLength  *int
	MaxItems   *int
	Items      *schema
	Enum       []string
	Properties map[string]schema
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

// The schema's defaults are the defaults, and it knows every key.
func TestSchemaDefaults(t *testing.T) {
	s := readSchema(t)
	cfg := new(Config)
	require.NoError(t, confmap.NewFromStringMap(s.defaults()).Unmarshal(cfg))
	require.Equal(t, createDefaultConfig(), cfg)

	conf := confmap.New()
	require.NoError(t, conf.Marshal(createDefaultConfig()))
	require.ElementsMatch(t, confmap.NewFromStringMap(s.defaults()).AllKeys(), conf.AllKeys())
}

// roomForParts lets each part of a limit be as large, and as small, as it may be.
func roomForParts(cfg *Config) {
	cfg.MaxMemoryBytes, cfg.MaxBPFMapBytes = maxMemoryBytes, maxBPFMapBytes
	cfg.MaxSymbolBytes, cfg.MaxBatchBytes, cfg.MaxUnwindBytes, cfg.RingBufferBytes = minSymbolBytes, minBatchBytes, minUnwindBytes, minRingBufferBytes
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
				cfg := createDefaultConfig().(*Config)
				roomForParts(cfg)
				nested := map[string]any{key: value}
				if path != "" {
					nested = map[string]any{path[:len(path)-len(confmap.KeyDelimiter)]: nested}
				}
				require.NoError(t, confmap.NewFromStringMap(nested).Unmarshal(cfg))
				return cfg.Validate()
			}
			if p.Minimum != nil {
				require.NoError(t, try(*p.Minimum), full)
				require.ErrorContains(t, try(*p.Minimum-1), full)
			}
			if p.Maximum != nil {
				require.NoError(t, try(*p.Maximum), full)
				require.ErrorContains(t, try(*p.Maximum+1), full)
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

// The schema of selectors has their fields, and their bounds are those of Validate.
func TestSchemaTargets(t *testing.T) {
	of := readSchema(t).Properties["targets"].Properties
	conf := confmap.New()
	require.NoError(t, conf.Marshal(&TargetSelector{}))
	for _, list := range []string{"include", "exclude"} {
		require.Equal(t, targets.MaxSelectors, *of[list].MaxItems)
		require.ElementsMatch(t, conf.AllKeys(), slices.Collect(maps.Keys(of[list].Items.Properties)))
		for key, p := range of[list].Items.Properties {
			if p.MaxLength != nil {
				require.Equal(t, targets.MaxGlobBytes, *p.MaxLength, key)
			}
			for _, bound := range []*int{p.Minimum, p.Maximum} {
				if bound == nil {
					continue
				}
				cfg := createDefaultConfig().(*Config)
				one := map[string]any{"targets": map[string]any{list: []any{map[string]any{key: *bound}}}}
				require.NoError(t, confmap.NewFromStringMap(one).Unmarshal(cfg), key)
				require.NoError(t, cfg.Validate(), key)
			}
		}
	}
}

// The schema of rules has their fields, actions and sources, and its bounds are those of Validate.
func TestSchemaRules(t *testing.T) {
	of := readSchema(t).Properties["labels"].Properties["rules"]
	conf := confmap.New()
	require.NoError(t, conf.Marshal(&LabelRule{}))
	require.Equal(t, labels.MaxRules, *of.MaxItems)
	require.ElementsMatch(t, conf.AllKeys(), slices.Collect(maps.Keys(of.Items.Properties)))
	require.ElementsMatch(t, of.Items.Properties["source"].Enum, slices.Collect(maps.Keys(ruleSources())))
	require.Equal(t, of.Items.Properties["action"].Enum, names(labels.NumActions, func(i int) string { return labels.Action(i).String() }))
	for key, want := range map[string]int{
		"name": maxRuleNameBytes, "key": labels.MaxPatternBytes, "executable": targets.MaxGlobBytes, "to": labels.MaxRenamedBytes,
	} {
		require.Equal(t, want, *of.Items.Properties[key].MaxLength, key)
	}
	require.Equal(t, labels.MaxDistinctLimit, *of.Items.Properties["limit"].Maximum)
	require.Equal(t, maxHashSaltBytes, *readSchema(t).Properties["labels"].Properties["hash_salt"].MaxLength)
}
