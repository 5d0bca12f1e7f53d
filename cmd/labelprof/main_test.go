// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/profiletest"
)

func called(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{}, {"nothing"}, {"top"}, {"pprof", "x"}, {"pprof", "-o", "x"}, {"serve", "--max-memory", "0"}, {"top", "--by", "", "x"}, {"serve", "--interval", "0s"}, {"serve", "--listen", ""}, {"pprof", "-o", "-", "x"}, {"serve", "--pprof", "-"}, {"serve", "--out-otlp", "-"}, {"top", "--nothing"},
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
	for _, name := range []string{"top", "push"} {
		code, _, stderr := called(name)
		require.Equal(t, command.ExitUsage, code)
		require.Equal(t, "labelprof "+name+": no files given\n", stderr)
	}
}

// TestHelp: each command says how it is called, what its exit codes mean, and its flags.
func TestHelp(t *testing.T) {
	for _, name := range []string{"serve", "top", "pprof", "push", "inspect", "check"} {
		for _, ask := range []string{"-h", "--help"} {
			code, stdout, stderr := called(name, ask)
			require.Zero(t, code)
			require.Empty(t, stderr, "what is asked for is no error")
			require.Regexp(t, `^usage: labelprof `+name+` \[flags\]`, stdout)
			require.Contains(t, stdout, "\nFlags:\n  --")
			require.NotContains(t, stdout, "\x1b")
			for code, means := range command.Exits(name) {
				require.Contains(t, stdout, fmt.Sprintf("\n  %d  %s\n", code, means))
			}
			for line := range strings.Lines(stdout) {
				if !strings.HasPrefix(line, "      ") { // what a flag is for
					require.LessOrEqual(t, len(line), 100, line)
				}
			}
		}
	}
	_, asked, _ := called("check", "-h")
	code, stdout, _ := called("help", "check")
	require.Zero(t, code)
	require.Equal(t, asked, stdout)
	code, _, stderr := called("help", "nothing")
	require.Equal(t, command.ExitUsage, code)
	require.Contains(t, stderr, "there is no command nothing")

	code, stdout, stderr = called("top", "--nothing\x1b")
	require.Equal(t, command.ExitUsage, code)
	require.Empty(t, stdout)
	require.Equal(t, "labelprof top: flag provided but not defined: -nothing\\x1b\nlabelprof top -h lists the flags.\n", stderr)
}

// TestExitCodes: each exit code that a command's help lists is what it ends with.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	data, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.Tenants().Profiles).MarshalProto()
	require.NoError(t, err)
	good, missing := filepath.Join(dir, "good"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(good, data, 0o600))
	seen := map[string]map[int]bool{}
	for _, tc := range []struct {
		code int
		args []string
	}{
		{0, []string{"top", good}},
		{1, []string{"top", missing}},
		{2, []string{"top"}},
		{0, []string{"pprof", "-o", filepath.Join(dir, "out"), good}},
		{1, []string{"pprof", "-o", filepath.Join(missing, "out"), good}},
		{2, []string{"pprof", good}},
		{0, []string{"serve", "--web", "", "--duration", "5s", good}},
		{1, []string{"serve", "--web", "", missing}},
		{2, []string{"serve", "--interval", "0s"}},
		{1, []string{"push", "--patience", "0s", missing}},
		{2, []string{"push"}},
		{1, []string{"inspect", "2147483647"}},
		{2, []string{"inspect", "none"}},
		{2, []string{"check"}},
	} {
		code, _, stderr := called(tc.args...)
		require.Equal(t, tc.code, code, "%q %s", tc.args, stderr)
		require.Less(t, code, len(command.Exits(tc.args[0])))
		if seen[tc.args[0]] == nil {
			seen[tc.args[0]] = map[int]bool{}
		}
		seen[tc.args[0]][code] = true
	}
	// What these take a process or a server for is in tests of their own.
	elsewhere := map[string][]int{"push": {0}, "inspect": {0, 3}, "check": {0, 1}}
	for name, codes := range seen {
		require.Len(t, command.Exits(name), len(codes)+len(elsewhere[name]), name)
	}
}
