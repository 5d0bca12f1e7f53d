// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/internal/writercheck"
)

// TestCheckOfSeveral: all processes of a command that publish are judged, whichever is found first.
func TestCheckOfSeveral(t *testing.T) {
	dir := testutil.BuildWriters(t)
	of := func(first, second string) []string {
		const rest = " shares --seconds 60"
		return []string{"--", "sh", "-c", filepath.Join(dir, first) + rest + " & exec " + filepath.Join(dir, second) + rest}
	}
	const good, also, bad = "writer-v1-lib", "writer-v1-exe", "writer-v1-dlopen"
	for _, both := range [][]string{of(good, bad), of(bad, good)} {
		var code int
		var text string
		for seconds := 1; seconds <= 16 && !(strings.Contains(text, bad) && strings.Contains(text, good)); seconds *= 4 {
			code, text, _ = checked(t, append([]string{"--seconds", fmt.Sprint(seconds)}, both...)...)
		}
		require.Equal(t, command.ExitError, code, text)
		require.Contains(t, text, "("+bad+")\n")
		require.Regexp(t, `\nalso watched: process \d+ \(`+good+`\): `, text)
	}
	code, text, _ := checkedUntil(t, "also watched: ", of(good, also)...)
	require.Zero(t, code, text)
	require.Contains(t, text, "also watched: ")
	code, text, _ = checkedUntil(t, "others", append([]string{"--json"}, of(good, also)...)...)
	require.Zero(t, code, text)
	var report struct {
		PID    int
		Others []struct{ PID int }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &report))
	require.Len(t, report.Others, 1)
	require.NotZero(t, report.Others[0].PID)
	require.NotEqual(t, report.PID, report.Others[0].PID)
}

// TestJudge: labels that were not seen are not made up for by a process that has no labels, and nothing
// holds while others were not watched.
func TestJudge(t *testing.T) {
	contextOnly := &writercheck.Report{PID: 1, Formats: []writercheck.Format{writercheck.ProcessContext}, Reads: writercheck.Reads{Contexts: 1}}
	holds := &writercheck.Report{PID: 2, Formats: []writercheck.Format{writercheck.V1}, Reads: writercheck.Reads{Published: 1}}
	unseen := &writercheck.Report{PID: 3, Formats: []writercheck.Format{writercheck.V1}}
	broken := &writercheck.Report{PID: 4, Formats: holds.Formats, Results: []writercheck.Result{{Verdict: writercheck.Broken}}}
	tool := &writercheck.Report{PID: 5, Formats: []writercheck.Format{writercheck.Go}}
	all := []*writercheck.Report{contextOnly, holds, unseen, broken, tool}
	for _, tc := range []struct {
		pids      []int
		decides   int
		verdict   writercheck.Verdict
		unwatched []int
	}{
		{[]int{1}, 1, writercheck.Holds, nil},
		{[]int{1, 3}, 3, writercheck.NotSeen, nil},
		{[]int{1, 4}, 4, writercheck.Broken, nil},
		{[]int{1, 5}, 1, writercheck.Holds, nil},
		{[]int{3, 2, 1}, 2, writercheck.Holds, nil},
		{[]int{2, 4}, 4, writercheck.Broken, nil},
		{[]int{2}, 2, writercheck.NotSeen, []int{7}},
		{[]int{4}, 4, writercheck.Broken, []int{7}},
	} {
		var reports []*writercheck.Report
		for _, pid := range tc.pids {
			reports = append(reports, all[pid-1])
		}
		j := judge(reports, tc.unwatched, false)
		require.Equal(t, tc.decides, j.PID, "%v", tc.pids)
		require.Equal(t, tc.verdict, j.Verdict(), "%v", tc.pids)
		require.Len(t, j.others, len(tc.pids)-1)
		if tc.unwatched != nil {
			require.Contains(t, text(j), "not watched: process 7, which publishes, too\n")
			require.Contains(t, markdown(j), "not watched: process 7")
			require.Equal(t, tc.verdict == writercheck.NotSeen, strings.Contains(text(j), "not judged: other processes"))
			var b bytes.Buffer
			require.NoError(t, writeJSON(&b, j))
			require.Contains(t, b.String(), `"not_watched": [`)
		}
	}
	crowd := judge([]*writercheck.Report{holds}, nil, true)
	require.Equal(t, writercheck.NotSeen, crowd.Verdict())
	require.Contains(t, text(crowd), "not judged: the command has more than the 32 further processes that are looked at")
}

// TestOthers: of a process group so many are looked at, and it is said if there are more.
func TestOthers(t *testing.T) {
	for _, n := range []int{maxOthers, maxOthers + 1} {
		cmd := exec.Command("sh", "-c", fmt.Sprintf("for i in $(seq %d); do sleep 60 & done; echo; wait", n))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		ready, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
		_, err = ready.Read(make([]byte, 1))
		require.NoError(t, err)
		found, crowded := others(cmd.Process.Pid)
		require.Len(t, found, maxOthers)
		require.Equal(t, n > maxOthers, crowded)
	}
}

// TestEndIsBounded: a command that cannot be ended is left behind.
func TestEndIsBounded(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	returned := make(chan string, 1)
	go func() { returned <- (&program{cmd: cmd, done: make(chan struct{})}).end() }()
	select {
	case how := <-returned:
		require.Empty(t, how)
	case <-time.After(5 * ending):
		t.Error("it waits for the command")
	}
	require.Error(t, cmd.Wait(), "it was killed")
}

// witness notes whether a command lives when it is said why it was not judged.
type witness struct {
	sync.Mutex
	cancel context.CancelFunc
	pid    int
	lived  bool
	said   bytes.Buffer
}

func (w *witness) Write(b []byte) (int, error) {
	w.Lock()
	defer w.Unlock()
	if w.pid == 0 {
		_, _ = fmt.Sscan(string(b), &w.pid)
		w.cancel()
	} else if strings.HasPrefix(string(b), "labelprof check: ") {
		w.lived = syscall.Kill(w.pid, 0) == nil
	}
	return w.said.Write(b)
}

// TestSaysWhyBeforeItEnds: what ends a command can take a while, and comes after what is said.
func TestSaysWhyBeforeItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &witness{cancel: cancel}
	err := Run(ctx, []string{"--seconds", "60", "--", "sh", "-c", "echo $$; exec sleep 60"}, &bytes.Buffer{}, w)
	require.Equal(t, command.ErrNotJudged, err)
	require.True(t, w.lived, "%s", &w.said)
	require.Equal(t, 1, strings.Count(w.said.String(), "labelprof check: "))
	require.ErrorIs(t, syscall.Kill(w.pid, 0), syscall.ESRCH)
}
