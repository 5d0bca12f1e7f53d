package labels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

func TestCovers(t *testing.T) {
	token := Rule{Key: "*token*", Source: record.ABIV1, Executable: "/opt/**", UIDs: []uint32{1, 2}}
	for name, tc := range map[string]struct {
		first, then Rule
		want        bool
	}{
		"all keys":              {Rule{}, token, true},
		"all keys, by pattern":  {Rule{Key: "**"}, token, true},
		"all keys then":         {token, Rule{Key: "*"}, false},
		"the same":              {token, token, true},
		"the same of all keys":  {Rule{Key: "*"}, Rule{}, true},
		"another key":           {Rule{Key: "tenant"}, Rule{Key: "*token*"}, false},
		"a key of several":      {Rule{Key: "tenant"}, Rule{Key: "t*"}, false},
		"of a source":           {Rule{Source: record.ABIV1}, Rule{}, false},
		"of another source":     {Rule{Source: record.ABIV0}, token, false},
		"of the source":         {Rule{Source: record.ABIV1}, token, true},
		"of an executable":      {Rule{Executable: "/opt/**"}, Rule{Key: "a"}, false},
		"of the executable":     {Rule{Executable: "/opt/**"}, token, true},
		"of a user":             {Rule{UIDs: []uint32{1}}, Rule{}, false},
		"of one of two users":   {Rule{UIDs: []uint32{1}}, token, false},
		"of more than the user": {Rule{UIDs: []uint32{2, 1, 3}}, token, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, tc.first.Covers(&tc.then)) })
	}
}

func TestLeaveKey(t *testing.T) {
	drop := func(key string) Rule { return Rule{Key: key, Action: Drop} }
	for name, tc := range map[string]struct {
		rules []Rule
		want  bool
	}{
		"no rules":            {nil, true},
		"another":             {[]Rule{drop("route")}, true},
		"dropped":             {[]Rule{drop("ten*")}, false},
		"all dropped":         {[]Rule{drop("")}, false},
		"renamed":             {[]Rule{{Key: "tenant", Action: Rename, To: "customer"}}, false},
		"renamed to itself":   {[]Rule{{Key: "tenant", Action: Rename, To: "tenant"}}, true},
		"another is renamed":  {[]Rule{drop("tenant"), {Key: "customer", Action: Rename, To: "tenant"}}, true},
		"kept":                {[]Rule{{Key: "tenant", Action: Keep}, drop("*")}, true},
		"hashed":              {[]Rule{{Key: "tenant", Action: Hash}, drop("*")}, true},
		"kept, but of a few":  {[]Rule{{Key: "tenant", Action: Keep, UIDs: []uint32{1}}, drop("*")}, true},
		"kept too late":       {[]Rule{drop("*"), {Key: "tenant", Action: Keep}}, false},
		"dropped of a user":   {[]Rule{{Action: Drop, UIDs: []uint32{1}}}, true},
		"of an executable":    {[]Rule{{Action: Drop, Executable: "/a"}}, true},
		"of a source":         {[]Rule{{Action: Drop, Source: record.ABIV0}}, true},
		"of a user, then all": {[]Rule{{Action: Drop, UIDs: []uint32{1}}, drop("tenan?")}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, LeaveKey(tc.rules, "tenant")) })
	}
}
