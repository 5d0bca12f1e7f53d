package processctx

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		service, attributes string
		want                map[string]string
		leftOut             int
	}{
		{"", "", map[string]string{}, 0},
		{"shop", "", map[string]string{"service.name": "shop"}, 0},
		{"", "a=b,c=d", map[string]string{"a": "b", "c": "d"}, 0},
		{"shop", "service.name=other,a=b", map[string]string{"service.name": "shop", "a": "b"}, 0},
		{"", " a = b%20c , d= ", map[string]string{"a": "b c", "d": ""}, 0},
		{"", "a=b=c%3D", map[string]string{"a": "b=c="}, 0},
		{"", "a=1,a=2", map[string]string{"a": "2"}, 0},
		{"shop", "a=b,broken", map[string]string{"service.name": "shop"}, 2},
		{"", "=b", map[string]string{}, 1},
		{"", "a=%zz", map[string]string{}, 1},
		{"", "a=%ff", map[string]string{}, 1},
		{"\xff", "a=b", map[string]string{"a": "b"}, 1},
		{"", "threadlocal.schema_version=tls_v1,a=b", map[string]string{"a": "b"}, 0},
	} {
		got := map[string]string{}
		resource, leftOut := FromEnvironment(c.service, c.attributes)
		for _, a := range resource {
			got[a.GetKey()] = a.GetValue().GetStringValue()
		}
		require.Equal(t, c.want, got, "%q %q", c.service, c.attributes)
		require.Equal(t, c.leftOut, leftOut, "%q %q", c.service, c.attributes)
	}
	var many []string
	for i := range 2 * MaxAttributes {
		many = append(many, fmt.Sprintf("k%d=v", i))
	}
	resource, leftOut := FromEnvironment("shop", strings.Join(many, ","))
	require.Len(t, resource, MaxAttributes)
	require.Equal(t, MaxAttributes+1, leftOut)
}

func FuzzFromEnvironment(f *testing.F) {
	f.Add("shop", "a=b,c=%20d")
	f.Fuzz(func(t *testing.T, service, attributes string) {
		seen := map[string]bool{}
		all, leftOut := FromEnvironment(service, attributes)
		require.True(t, leftOut >= 0 && leftOut <= 2+strings.Count(attributes, ","))
		require.LessOrEqual(t, len(all), MaxAttributes)
		for _, a := range all {
			require.True(t, utf8.ValidString(a.GetKey()) && utf8.ValidString(a.GetValue().GetStringValue()))
			require.False(t, seen[a.GetKey()] || a.GetKey() == "")
			seen[a.GetKey()] = true
		}
	})
}
