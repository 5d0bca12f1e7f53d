package budget

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Reading a file ends when it has taken its time, counted from its own beginning.
func TestFilePace(t *testing.T) {
	clk := &clock{ns: 1e15}
	pace := FilePace(clk.now)
	require.NoError(t, pace())
	clk.pass(MaxFileTime)
	require.NoError(t, pace())
	clk.pass(1)
	require.ErrorIs(t, pace(), ErrFileTime)
}
