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
	}{
		{"", "", map[string]string{}},
		{"shop", "", map[string]string{"service.name": "shop"}},
		{"", "a=b,c=d", map[string]string{"a": "b", "c": "d"}},
		{"shop", "service.name=other,a=b", map[string]string{"service.name": "shop", "a": "b"}},
		{"", " a = b%20c , d= ", map[string]string{"a": "b c", "d": ""}},
		{"", "a=b=c%3D", map[string]string{"a": "b=c="}},
		{"", "a=1,a=2", map[string]string{"a": "2"}},
		{"shop", "a=b,broken", map[string]string{"service.name": "shop"}},
		{"", "=b", map[string]string{}},
		{"", "a=%zz", map[string]string{}},
		{"", "a=%ff", map[string]string{}},
		{"\xff", "a=b", map[string]string{"a": "b"}},
		{"", "threadlocal.schema_version=tls_v1,a=b", map[string]string{"a": "b"}},
	} {
		got := map[string]string{}
		for _, a := range FromEnvironment(c.service, c.attributes) {
			got[a.GetKey()] = a.GetValue().GetStringValue()
		}
		require.Equal(t, c.want, got, "%q %q", c.service, c.attributes)
	}
	var many []string
	for i := range 2 * MaxAttributes {
		many = append(many, fmt.Sprintf("k%d=v", i))
	}
	require.Len(t, FromEnvironment("shop", strings.Join(many, ",")), MaxAttributes)
}

func FuzzFromEnvironment(f *testing.F) {
	f.Add("shop", "a=b,c=%20d")
	f.Fuzz(func(t *testing.T, service, attributes string) {
		seen := map[string]bool{}
		all := FromEnvironment(service, attributes)
		require.LessOrEqual(t, len(all), MaxAttributes)
		for _, a := range all {
			require.True(t, utf8.ValidString(a.GetKey()) && utf8.ValidString(a.GetValue().GetStringValue()))
			require.False(t, seen[a.GetKey()] || a.GetKey() == "")
			seen[a.GetKey()] = true
		}
	})
}
