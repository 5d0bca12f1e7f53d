package hotspot

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Behind what is read of a table of lines, no line is known; up to there each is its own.
func TestLinesCut(t *testing.T) {
	const each = 1<<3 | 1 // the next bytecode, the next line
	for name, table := range map[string][]byte{
		"whole":        append(bytes.Repeat([]byte{each}, 100), 0),
		"without end":  bytes.Repeat([]byte{each}, 100),
		"back to 0":    append(bytes.Repeat([]byte{each}, 100), 0xff, 0x80),
		"of too many":  append(bytes.Repeat([]byte{each}, 2*maxLines), 0),
		"of many more": bytes.Repeat([]byte{each}, 4*maxLines),
	} {
		t.Run(name, func(t *testing.T) {
			lines := decodeLines(stream{b: table})
			known := min(len(lines), 99)
			for bytecode := 1; bytecode <= known; bytecode++ {
				require.Equal(t, bytecode, lineOf(lines, bytecode))
			}
			if name == "whole" {
				require.Equal(t, 100, lineOf(lines, 5000))
				return
			}
			require.Zero(t, lineOf(lines, len(lines)))
			require.Zero(t, lineOf(lines, 3*maxLines))
		})
	}
}
