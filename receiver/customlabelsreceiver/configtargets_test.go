package customlabelsreceiver

import (
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
