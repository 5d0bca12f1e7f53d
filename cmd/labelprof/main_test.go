// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
)

func called(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"nothing"}, {"top"}, {"pprof", "x"}, {"pprof", "-o", "x"}, {"serve", "--max-memory", "0"}, {"top", "--by", "", "x"}, {"serve", "--interval", "0s"}, {"top", "--nothing"},
	} {
		code, _, stderr := called(args...)
		require.Equal(t, command.ExitUsage, code, "%q", args)
		require.NotEmpty(t, stderr)
	}
	code, _, stderr := called("serve", "-h")
	require.Zero(t, code)
	require.Contains(t, stderr, "-listen")
	code, stdout, _ := called("--version")
	require.Zero(t, code)
	require.Equal(t, "labelprof "+version+"\n", stdout)
}
