package customlabelsreceiver

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func targetsOf(t *testing.T, value map[string]any) (*Config, error) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	return cfg, confmap.NewFromStringMap(map[string]any{"targets": value}).Unmarshal(cfg)
}

func TestTargets(t *testing.T) {
	cfg, err := targetsOf(t, map[string]any{
		"include": []any{
			map[string]any{"executable": "/usr/lib/postgresql/**", "uid": 0},
			map[string]any{"cgroup": "/system.slice/nginx.service"}, map[string]any{"cgroup_id": 77},
		},
		"exclude":       []any{map[string]any{"container_id": "abc*"}, map[string]any{"pid": 1234}},
		"labelled_only": true,
	})
	require.NoError(t, err)
	require.NoError(t, cfg.Validate())
	root := int64(0)
	require.Equal(t, Targets{
		Include:      []TargetSelector{{Executable: "/usr/lib/postgresql/**", UID: &root}, {Cgroup: "/system.slice/nginx.service"}, {CgroupID: 77}},
		Exclude:      []TargetSelector{{ContainerID: "abc*"}, {PID: 1234}},
		LabelledOnly: true,
	}, cfg.Targets)
	selection := cfg.Targets.selection()
	require.True(t, selection.ByPID())
	require.Zero(t, createDefaultConfig().(*Config).options().Targets, "all")
}

// A field without a value, such as one of a variable that is not set, does not make a selector that matches more.
func TestTargetsWithoutValue(t *testing.T) {
	for _, key := range []string{"include", "exclude"} {
		for field, values := range map[string][]any{
			"executable": {nil, ""}, "cgroup": {nil, ""}, "container_id": {nil, ""}, "cgroup_id": {nil, "", 0}, "pid": {nil, "", 0}, "uid": {nil, ""},
		} {
			for _, value := range values {
				selectors := []any{map[string]any{"pid": 1}, map[string]any{"uid": 0, field: value}}
				_, err := targetsOf(t, map[string]any{key: selectors})
				require.ErrorContains(t, err, field+" must have a value", "%v", value)
				require.ErrorContains(t, err, key+"[1]", "it is told which one")
			}
		}
	}
	conf := resolved(t, "targets: {include: [{uid: 0, executable: \"${env:NOT_SET}\"}]}")
	require.ErrorContains(t, conf.Unmarshal(createDefaultConfig()), "executable must have a value")
}

// resolved is a configuration with its variables, none of which is set, put in as the collector does it.
func resolved(t *testing.T, text string) *confmap.Conf {
	t.Helper()
	settings := confmap.ResolverSettings{URIs: []string{"yaml:" + text}}
	for _, scheme := range []string{"yaml", "env"} {
		settings.ProviderFactories = append(settings.ProviderFactories,
			confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return textProvider{scheme} }))
	}
	resolver, err := confmap.NewResolver(settings)
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	return conf
}

// textProvider is what the collector's providers do: text after the scheme, and variables of which none is set.
type textProvider struct{ scheme string }

func (p textProvider) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	text := strings.TrimPrefix(uri, p.scheme+":")
	if p.scheme == "env" {
		text = ""
	}
	return confmap.NewRetrievedFromYAML([]byte(text))
}

func (p textProvider) Scheme() string { return p.scheme }

func (textProvider) Shutdown(context.Context) error { return nil }

func TestTargetsInvalid(t *testing.T) {
	many := make([]any, 65)
	for i := range many {
		many[i] = map[string]any{"pid": 1}
	}
	for want, list := range map[string][]any{
		"::1: a selector must have at least one of":                 {map[string]any{"pid": 1}, map[string]any{}},
		`::0: executable is not a valid glob: "/["`:                 {map[string]any{"executable": "/["}},
		`::0: cgroup must begin with / or **`:                       {map[string]any{"cgroup": "nginx.service"}},
		"::0: pid must be positive, not -1":                         {map[string]any{"pid": -1}},
		"::0: uid must be between 0 and 4294967295, not -1":         {map[string]any{"uid": -1}},
		"::0: uid must be between 0 and 4294967295, not 8589934592": {map[string]any{"uid": 1 << 33}},
		" must have at most 64 selectors, not 65":                   many,
	} {
		for _, key := range []string{"include", "exclude"} {
			cfg, err := targetsOf(t, map[string]any{key: list})
			require.NoError(t, err)
			require.ErrorContains(t, cfg.Validate(), "targets::"+key+want)
		}
	}
	for _, bad := range []map[string]any{{"cgroup_id": -1}, {"name": "x"}} {
		_, err := targetsOf(t, map[string]any{"include": []any{bad}})
		require.Error(t, err, "%v", bad)
	}
	require.Len(t, strings.Split(func() string {
		cfg, _ := targetsOf(t, map[string]any{"include": []any{map[string]any{}}, "exclude": []any{map[string]any{}}})
		return cfg.Validate().Error()
	}(), "\n"), 2, "each is named")
}
