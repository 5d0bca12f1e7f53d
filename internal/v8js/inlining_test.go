package v8js

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/langruntime"
)

// A function may be put into itself, by way of another one: V8 has no number for it then.
func TestInlinedIntoItself(t *testing.T) {
	everyVersion(t, func(t *testing.T, b *builder) {
		outer, _ := b.function("outer")
		g, _ := b.function("g")
		last, _ := b.function("last")
		frames := func(inlined ...int) func(position uint32) []langruntime.Frame {
			p, err := b.l.Open(b.memory, 0)
			require.NoError(t, err)
			f, err := b.readCode(t, p, b.compile(&compilation{
				functions: []uint64{outer, g, last},
				callers:   []int{-1, 0, -1},
				inlined:   inlined,
				places: []int{
					100, sourcePosition(9, -1), 200, sourcePosition(9, 0), 300, sourcePosition(20, 1), 400, sourcePosition(20, 2),
				},
			}))
			require.NoError(t, err)
			return func(position uint32) []langruntime.Frame { return f.Frames(nil, position) }
		}
		frame := func(name string, line int) langruntime.Frame {
			return langruntime.Frame{Name: name, File: testFile, Line: line, StartLine: 2}
		}
		at := frames(1, -1, 2)
		require.Equal(t, []langruntime.Frame{frame("outer", 3)}, at(101))
		require.Equal(t, []langruntime.Frame{frame("g", 3), frame("outer", 4)}, at(201))
		require.Equal(t, []langruntime.Frame{frame("outer", 5), frame("g", 4), frame("outer", 4)}, at(301))
		require.Equal(t, []langruntime.Frame{frame("last", 5), frame("outer", 4)}, at(401))

		// What is in no inlining that is known is not in the one before.
		for _, unknown := range []int{-2, 3} {
			at = frames(1, unknown, 2)
			require.Equal(t, []langruntime.Frame{frame("g", 3), frame("outer", 4)}, at(201))
			require.Equal(t, []langruntime.Frame{frame("outer", 0)}, at(301))
			require.Equal(t, []langruntime.Frame{frame("outer", 0)}, at(401))
		}
	})
}
