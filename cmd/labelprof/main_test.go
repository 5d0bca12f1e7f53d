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
		{"top", "--rows", "-1", "x"}, {"serve", "--functions", "-1"}, {"serve", "--rows", "many"},
	} {
		code, _, stderr := called(args...)
		require.Equal(t, command.ExitUsage, code, "%q", args)
		require.NotEmpty(t, stderr)
	}
	_, _, stderr := called("none\x1b")
	require.Contains(t, stderr, `there is no command none\x1b`)
	for _, args := range []string{"--version", "version"} {
		code, stdout, _ := called(args)
		require.Zero(t, code)
		require.Regexp(t, `^labelprof .* go1\.`, stdout)
	}
	code, stdout, _ := called("--help")
	require.Zero(t, code)
	require.Contains(t, stdout, "labelprof check")

	code, _, stderr = called("serve", "-h")
	require.Zero(t, code)
	require.Contains(t, stderr, "-listen")
}
