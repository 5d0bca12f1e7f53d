// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/internal/labelsource"
)

// readable is the report of a process with a label source.
func readable(pid int) processReport {
	return processReport{PID: pid, Executable: "/bin/app", Sources: []sourceReport{{state: labelsource.Active}}}
}

// TestOneOfThemHangs: a process that does not let itself be read takes no other one's report with it.
func TestOneOfThemHangs(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { oneOfThemHangs(t, asJSON) })
	}
}

func oneOfThemHangs(t *testing.T, asJSON bool) {
	over := make(chan struct{})
	defer close(over)
	inspect := func(_ context.Context, pid int) processReport {
		if pid == 7 {
			<-over
		}
		return readable(pid)
	}
	var stdout, stderr bytes.Buffer
	const limit = 10 * time.Millisecond
	began := time.Now()
	err := show(inspectAll(t.Context(), []int{7, 8}, limit, inspect), asJSON, &stdout, &stderr)
	require.Equal(t, limit, time.Since(began))
	require.Equal(t, command.ExitError, command.ExitCode("inspect", err, &stderr))
	require.Contains(t, stdout.String(), "/bin/app")
	hangs := &stderr
	if asJSON {
		hangs = &stdout
	}
	require.Contains(t, hangs.String(), "inspect process 7: reading the process hangs")
	require.Contains(t, stderr.String(), "1 of 2 processes could not be inspected")
}

// TestFirstIsShownAtOnce: what was found of a process does not wait for the next one.
func TestFirstIsShownAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	defer close(over)
	var stdout, stderr bytes.Buffer
	err := show(inspectAll(ctx, []int{7, 8}, time.Minute, func(_ context.Context, pid int) processReport {
		if pid == 8 {
			cancel()
			<-over
		}
		return readable(pid)
	}), false, &stdout, &stderr)
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, stdout.String(), "/bin/app")
}
