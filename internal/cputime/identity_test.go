package cputime

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The identity of a resource does not depend on the order of keys, and on all else.
func TestIdentity(t *testing.T) {
	of := func(raw map[string]any, flip bool) string {
		m, keys := pcommon.NewMap(), []string{}
		for k := range raw {
			keys = append(keys, k)
		}
		if flip {
			rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		}
		for _, k := range keys {
			require.NoError(t, m.PutEmpty(k).FromRaw(raw[k]))
		}
		return string(appendMap(nil, m))
	}
	different := []map[string]any{
		{}, {"a": "b"}, {"a": int64(1)}, {"a": 1.0}, {"a": true}, {"a": false}, {"a": []byte("b")}, {"a": nil},
		{"a": []any{"b"}}, {"a": []any{"b", "c"}}, {"a": map[string]any{"b": "c"}}, {"a": "b", "c": "d"}, {"ab": "", "c": "d"}, {"a": "bc", "": "d"},
		{"a": "x", "yz": "v"}, {"a": "xy", "z": "v"},
	}
	seen := map[string]int{}
	for i, raw := range different {
		id := of(raw, false)
		require.NotContains(t, seen, id, "%v", raw)
		seen[id] = i
		for range 5 {
			require.Equal(t, id, of(raw, true))
		}
	}
}
