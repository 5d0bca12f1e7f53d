// SPDX-License-Identifier: Apache-2.0

package command

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParse: flags and arguments come in any order, and all behind -- are arguments.
func TestParse(t *testing.T) {
	for line, want := range map[string]string{
		"a --rows 3 b":           "a b",
		"--rows 3 -- -x -y":      "-x -y",
		"a --rows 3 -- -x -- -y": "a -x -- -y",
		"--rows=3 --":            "",
	} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		var v ViewFlags
		v.Register(flags)
		rest, err := Parse(&Help{Name: "top"}, flags, strings.Fields(line), io.Discard, io.Discard)
		require.NoError(t, err, line)
		require.Equal(t, want, strings.Join(rest, " "), line)
		require.EqualValues(t, 3, v.Rows, line)
	}
}
