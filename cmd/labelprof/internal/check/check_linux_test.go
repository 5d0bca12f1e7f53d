// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/writercheck"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// checked runs the command and returns its exit code and what it prints.
func checked(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = command.ExitCode("check", Run(t.Context(), args, &out, &errs), &errs)
	return code, out.String(), errs.String()
}

// checkedUntil runs the command for longer and longer until it prints what is wanted, or a rule is
// broken: a busy machine may have no time for the program that is watched.
func checkedUntil(t *testing.T, want string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	for seconds := 0.5; ; seconds *= 4 {
		code, stdout, stderr = checked(t, append([]string{"--seconds", fmt.Sprint(seconds)}, args...)...)
		if code == command.ExitError || code == 0 && strings.Contains(stdout, want) || seconds >= 8 {
			return code, stdout, stderr
		}
	}
}

func TestCheckCommand(t *testing.T) {
	dir := testutil.BuildWriters(t)
	good := []string{"--", filepath.Join(dir, "writer-v1-lib"), "shares", "--seconds", "60"}

	const all = "17 rules hold, 0 broken"
	code, text, stderr := checkedUntil(t, all, good...)
	require.Zero(t, code, text)
	require.Contains(t, text, all)
	require.Contains(t, stderr, "ready", "what the command prints")

	code, text, _ = checkedUntil(t, "", append([]string{"--json"}, good...)...)
	require.Zero(t, code)
	var report struct {
		PID     int
		Verdict string
		Formats []string
		Rules   []struct{ ID, Verdict, Document, Section, Remedy, Level string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &report), text)
	require.Equal(t, "holds", report.Verdict)
	require.Equal(t, []string{"custom_labels_v1"}, report.Formats)
	require.Len(t, report.Rules, 17)
	require.NotZero(t, report.PID)
	require.Error(t, syscall.Kill(report.PID, 0), "the command has been ended")

	code, text, _ = checkedUntil(t, "", "--summary", "markdown", "--", filepath.Join(dir, "writer-v1-dlopen"), "shares", "--seconds", "60")
	require.Equal(t, command.ExitError, code)
	require.Contains(t, text, "| ❌ | custom_labels_v1/loaded-at-start: ")
	require.Contains(t, text, "| ✅ | custom_labels_v1/version-value: ")

	// One that a shell has started, and that is not the shell.
	code, text, _ = checkedUntil(t, all, "--", "sh", "-c", filepath.Join(dir, "writer-v1-lib")+" shares --seconds 60; true")
	require.Zero(t, code, text)
}

func TestCheckPID(t *testing.T) {
	w := testutil.Start(t, "writer-ctx-lib", "shares", "--seconds", "60")
	const format = "thread_context (OTEP 4947)"
	code, text, _ := checkedUntil(t, format, strconv.Itoa(w.PID))
	require.Zero(t, code, text)
	require.Contains(t, text, format)
	require.Contains(t, text, "process_context (OTEP 4719)")
}

func TestCheckNotJudged(t *testing.T) {
	for _, args := range [][]string{
		{}, {"1", "2"}, {"x"}, {"0"}, {"--"}, {"1", "--", "true"}, {"--seconds", "0", "1"}, {"--seconds", "NaN", "1"},
		{"--summary", "html", "1"}, {"--summary", "markdown", "--json", "1"}, {"--nothing"}, {strconv.Itoa(os.Getpid())},
		{"--", "/nothing/of/the/kind"}, {"2147483647"},
	} {
		code, _, stderr := checked(t, args...)
		require.Equal(t, command.ExitUsage, code, "%q", args)
		require.NotEmpty(t, stderr, "%q", args)
	}
	code, text, _ := checked(t, "--seconds", "0.2", "--", "sleep", "60")
	require.Equal(t, command.ExitUsage, code)
	require.Contains(t, text, "not judged: nothing is published")

	began := time.Now()
	code, _, stderr := checked(t, "--seconds", "60", "--", "false")
	require.Equal(t, command.ExitUsage, code)
	require.Equal(t, "labelprof check: the command ended before it was judged (exit status 1): have it run for the 60 seconds that it is watched\n", stderr)
	require.Less(t, time.Since(began), 30*time.Second, "it does not wait for a command that has ended")

	code, help, _ := checked(t, "-h")
	require.Zero(t, code)
	require.Contains(t, help, "Exit codes:")
}

// TestLookingForItHangs: a process of a command that does not let itself be read while the one that publishes is
// looked for keeps the check from ending no more than one that is watched.
func TestLookingForItHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	defer close(over)
	_, err := watched(ctx, time.Minute, func(context.Context) (*judgement, error) {
		cancel()
		select {
		case <-over:
		case <-time.After(10 * time.Second):
			t.Error("the check waits for the process")
		}
		return nil, nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

// failing is an output without room.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestReportCannotBeWritten: a report that is not written is none, and breaks no rule.
func TestReportCannotBeWritten(t *testing.T) {
	w := testutil.Start(t, "writer-v1-dlopen", "shares", "--seconds", "60") // breaks a rule
	for _, args := range [][]string{nil, {"--json"}, {"--summary", "markdown"}} {
		args = append(args, "--seconds", "0.5", strconv.Itoa(w.PID))
		var stderr bytes.Buffer
		require.Equal(t, command.ExitUsage, command.ExitCode("check", Run(t.Context(), args, failing{}, &stderr), &stderr), "%q", args)
		require.Equal(t, "labelprof check: no space left on device\n", stderr.String(), "%q", args)
	}
}

// TestJSONIsEscaped: a path does not reach the terminal, and is whole.
func TestJSONIsEscaped(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeJSON(&b, &judgement{Report: &writercheck.Report{Program: "/x\u009b31m\u202e"}}))
	require.NotContains(t, b.String(), "\u009b")
	require.NotContains(t, b.String(), "\u202e")
	var report struct{ Program string }
	require.NoError(t, json.Unmarshal(b.Bytes(), &report))
	require.Equal(t, "/x\u009b31m\u202e", report.Program)
}

// What comes from a process is no Markdown.
func TestCell(t *testing.T) {
	require.Equal(t, `&#124;&lt;b&gt;\x1b&#91;31m&#96;x&#96; &amp;`, cell("|<b>\x1b[31m`x` &"))
}
