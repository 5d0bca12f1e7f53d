package writercheck

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/fakemem"
)

// The mapping of a process context has its name before anything is written there.
func TestContextBeforeItIsWritten(t *testing.T) {
	header := make([]byte, 64)
	j := contextJudge{t: newTally()}
	j.judge(readPublication(&fakemem.Window{Bytes: header}, 0), 10, 0)
	require.Empty(t, j.t.results)
	written := append([]byte(contextSignature), 2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 10, 2, 10, 0)
	copy(header, written)
	j.judge(readPublication(&fakemem.Window{Bytes: header}, 0), 10, 0)
	j.end()
	require.Equal(t, uint64(1), j.t.of("process_context/signature").Held)
	require.Zero(t, j.t.of("process_context/signature").Broke)
	require.Zero(t, j.t.of("process_context/timestamp").Broke)

	never := contextJudge{t: newTally()}
	never.judge(readPublication(&fakemem.Window{Bytes: make([]byte, 64)}, 0), 10, 0)
	never.end()
	require.Equal(t, uint64(1), never.t.of("process_context/timestamp").Broke)
}
