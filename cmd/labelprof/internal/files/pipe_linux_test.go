// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/cmd/labelprof/internal/command"
)

// pipe is the name of a pipe with this in it.
func pipe(t *testing.T, data []byte) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = w.Write(data) // if nobody reads it, the test fails by that
		w.Close()
	}()
	t.Cleanup(func() { r.Close(); <-done })
	return fmt.Sprintf("/proc/self/fd/%d", r.Fd())
}

// TestPipes: of a pipe the tables say the same as of a file.
func TestPipes(t *testing.T) {
	all := formats(t)
	all["empty"] = nil
	all["garbage"] = []byte("garbage")
	out := filepath.Join(t.TempDir(), "out.pb.gz")
	code, _, stderr := run("pprof", "-o", out, writeTemp(t, all["lines"]))
	require.Zero(t, code, stderr)
	var err error
	all["pprof"], err = os.ReadFile(out)
	require.NoError(t, err)
	for name, data := range all {
		file := writeTemp(t, data)
		wantCode, want, wantErr := run("top", file)
		from := pipe(t, data)
		code, stdout, stderr := run("top", from)
		require.Equal(t, wantCode, code, "%s: %s", name, stderr)
		require.Equal(t, want, stdout, name)
		require.Equal(t, strings.ReplaceAll(wantErr, file, from), stderr, name)
		require.Equal(t, name == "empty" || name == "garbage", code != 0, name)
	}
}

// TestHostileNames: what errors quote of a file, and its name, do not reach the terminal.
func TestHostileNames(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "\x1b[2J")
	for want, file := range map[string]string{
		`'\\x1b'`: writeTemp(t, []byte("{\"resourceProfiles\":\x1b]0;x\a")),
		`\x1b[2J`: missing,
	} {
		code, _, stderr := run("top", file)
		require.Equal(t, command.ExitError, code)
		require.NotContains(t, stderr, "\x1b")
		require.Contains(t, stderr, want)
	}
}

// failing is a writer that fails.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestTopCannotBeWritten: tables that are not written are an error, but for a pager that was left.
func TestTopCannotBeWritten(t *testing.T) {
	file := writeTemp(t, formats(t)["single"])
	for _, args := range [][]string{{file}, {"--json", file}} {
		for err, want := range map[error]int{syscall.ENOSPC: command.ExitError, io.ErrClosedPipe: command.ExitError, &os.PathError{Err: syscall.EPIPE}: command.ExitOK} {
			var stderr bytes.Buffer
			code := command.ExitCode("top", Top(context.Background(), args, failing{err}, &stderr), &stderr)
			require.Equal(t, want, code, "%q: %v", args, err)
			require.Equal(t, want != 0, stderr.Len() > 0)
		}
	}
}
