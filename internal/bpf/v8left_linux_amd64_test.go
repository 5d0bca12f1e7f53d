package bpf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// A function whose frame has gone again, far behind its begin, is there beside its caller: its
// instructions tell. On aarch64 that is one instruction, which cannot be repeated.
func TestV8CodeLeft(t *testing.T) {
	const behindPop = 46 // the position of dec in left of v8.c
	s, pid, codes := startV8(t, "left")
	seen := 0
	readUntil(t, s, func(r *Record) bool {
		if r.PID != pid || len(r.UserFrames) < 2 || r.UserFrames[0] < 1<<63 ||
			record.RuntimeWord(r.UserFrames[0]).Position() != behindPop {
			return false
		}
		require.Len(t, r.UserFrames, 4)
		require.Equal(t, codes[0], r.UserFrames[1])
		require.Equal(t, codes[0], r.UserFrames[3])
		seen++
		return seen >= 20
	})
}
