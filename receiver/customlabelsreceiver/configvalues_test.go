package customlabelsreceiver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

const mustHaveValue = " must have a value, or not be there"

// unset is a configuration in which a key's value is that of a variable that is not set.
func unset(t *testing.T, key string) *confmap.Conf {
	t.Helper()
	text, err := json.Marshal(withKey(key, "${env:NOT_SET}"))
	require.NoError(t, err)
	return resolved(t, string(text))
}

// withoutNone leaves out the keys that have no default.
func withoutNone(conf *confmap.Conf) *confmap.Conf {
	for _, key := range conf.AllKeys() {
		if conf.Get(key) == nil {
			conf.Delete(key)
		}
	}
	return conf
}

// No key is off, none or 0 because it has no value, be it left out or that of a variable that is not set.
func TestKeysWithoutValue(t *testing.T) {
	s := readSchema(t)
	for _, key := range s.keys("") {
		for _, conf := range []*confmap.Conf{confmap.NewFromStringMap(withKey(key, nil)), unset(t, key)} {
			require.True(t, conf.IsSet(key), key)
			cfg := createDefaultConfig()
			err := conf.Unmarshal(cfg)
			if key == "labels::hash_salt" {
				require.NoError(t, err)
				require.Equal(t, createDefaultConfig(), cfg)
				continue
			}
			require.ErrorContains(t, err, key+mustHaveValue)
		}
	}
}

// Nor is anything in a list: neither an element, nor a field of one.
func TestElementsWithoutValue(t *testing.T) {
	lists := 0
	var check func(path string, s schema)
	check = func(path string, s schema) {
		for key, p := range s.Properties {
			if p.Properties != nil {
				check(path+key+confmap.KeyDelimiter, p)
			}
			if p.Items == nil {
				continue
			}
			lists++
			full := path + key
			refused := func(value any, wants ...string) {
				err := confmap.NewFromStringMap(withKey(full, value)).Unmarshal(createDefaultConfig())
				for _, want := range wants {
					require.ErrorContains(t, err, want, "%s: %v", full, value)
				}
			}
			if p.Items.Properties == nil {
				refused("", full+mustHaveValue) // it passes for an empty list
				refused([]any{"a", nil}, full+"::1"+mustHaveValue)
			}
			for field := range p.Items.Properties {
				refused([]any{map[string]any{field: nil}}, field, " must have a value")
			}
			require.NoError(t, confmap.NewFromStringMap(withKey(full, []any{})).Unmarshal(createDefaultConfig()), full)
		}
	}
	check("", readSchema(t))
	require.NotZero(t, lists)
}

// A section without a value has its defaults: one of a variable that is not set is not cleared.
func TestSectionsWithoutValue(t *testing.T) {
	sections := 0
	var check func(path string, s schema)
	check = func(path string, s schema) {
		for key, p := range s.Properties {
			if p.Properties == nil {
				continue
			}
			sections++
			full := path + key
			want := createDefaultConfig().(*Config)
			if full == "off_cpu" {
				require.NoError(t, confmap.NewFromStringMap(map[string]any{full: map[string]any{}}).Unmarshal(want))
				require.NotNil(t, want.OffCPU.Get())
			}
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(withKey(full, nil)).Unmarshal(cfg), full)
			require.Equal(t, want, cfg, full)

			cfg = createDefaultConfig().(*Config)
			if err := unset(t, full).Unmarshal(cfg); err != nil {
				require.ErrorContains(t, err, full+mustHaveValue)
			} else {
				require.Equal(t, want, cfg, full)
			}
			check(full+confmap.KeyDelimiter, p)
		}
	}
	check("", readSchema(t))
	require.NotZero(t, sections)
	for _, full := range []string{"labels", "attributes", "attributes::trace_id", "runtimes", "metrics"} {
		require.ErrorContains(t, unset(t, full).Unmarshal(createDefaultConfig()), full+mustHaveValue)
	}
}

// Several are told at once, in the order of the keys.
func TestAllKeysWithoutValueAreTold(t *testing.T) {
	conf := resolved(t, "{unwind: , labels: {rules: , enabled: }, off_cpu: {minimum: }, batch_per_user: ~}")
	require.ErrorContains(t, conf.Unmarshal(createDefaultConfig()), strings.Join([]string{
		"batch_per_user", "labels::enabled", "labels::rules", "off_cpu::minimum", "unwind",
	}, mustHaveValue+"\n")+mustHaveValue)
	for _, text := range []string{"labels: {prefix: \"\"}", "targets: {include: []}", "off_cpu: {minimum: 0s, enabled: true}", "off_cpu: {enabled: false}"} {
		require.NoError(t, resolved(t, text).Unmarshal(createDefaultConfig()), text)
	}
	require.ErrorContains(t, resolved(t, fmt.Sprintf("labels: {prefix: %q}", "${env:NOT_SET}")).Unmarshal(createDefaultConfig()),
		"labels::prefix"+mustHaveValue)
}
