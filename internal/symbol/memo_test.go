package symbol

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names that are asked for again stay, whatever else is kept meanwhile; others go, and their bytes with them.
func TestMemoOfManyNames(t *testing.T) {
	for name, text := range map[string]string{"many": "", "long": strings.Repeat("n", maxMemoBytes/100)} {
		var m memo[int]
		m.keep(-1, "kept")
		m.keep(-2, "left")
		for i := range 3 * maxMemo {
			_, ok := m.find(i)
			require.False(t, ok)
			m.keep(i, text)
			if i%40 == 0 {
				kept, ok := m.find(-1)
				require.True(t, ok, "%s: %d", name, i)
				require.Equal(t, "kept", kept)
			}
			require.LessOrEqual(t, m.bytes(), maxMemoBytes)
			require.LessOrEqual(t, len(m.names), maxMemo)
			if text != "" && i == 400 {
				break
			}
		}
		_, ok := m.find(-2)
		require.False(t, ok, name)
		require.Equal(t, len(m.names), m.order.Len())
		bytes := 0
		for e := m.order.Front(); e != nil; e = e.Next() {
			bytes += memoBytes + len(e.Value.(memoName[int]).name)
		}
		require.Equal(t, bytes, m.bytes())
	}
}

// Names that all find room stay, in whatever order they are asked for again, also after others had it.
func TestMemoOfManyUsedNames(t *testing.T) {
	for name, tc := range map[string]struct{ n, length int }{
		"many": {maxMemo * 3 / 4, 8}, "long": {1024, maxMemoBytes*3/4/1024 - memoBytes},
	} {
		var m memo[int]
		round := func(first int) (missed int) {
			for i := first; i < first+tc.n; i++ {
				if _, ok := m.find(i); !ok {
					missed++
					m.keep(i, strings.Repeat("n", tc.length))
				}
			}
			return missed
		}
		require.Equal(t, tc.n, round(0), name)
		require.Zero(t, round(0), name)
		require.Equal(t, tc.n, round(tc.n), name)
		require.Zero(t, round(tc.n), name)
		require.LessOrEqual(t, m.bytes(), maxMemoBytes)
	}
}
