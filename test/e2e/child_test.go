//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	childStartTimeout = 3 * time.Minute
	childStopTimeout  = 3 * time.Minute
)

// A child is a program that runs beside the test.
type child struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
	err            error
}

// An output is read while it is written.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// startChild runs a program of this repository's build. It is killed at the end
// of the test if it still runs.
func startChild(t *testing.T, env []string, program string, args ...string) *child {
	t.Helper()
	_, err := os.Stat(program)
	require.NoError(t, err, "make e2e-collector builds it")
	c := &child{t: t, cmd: exec.Command(program, args...), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	require.NoError(t, c.cmd.Start())
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", program, c.stderr.String())
		}
	})
	return c
}

// awaitLine waits until the program has said something on stderr and returns the last such line.
func (c *child) awaitLine(part string) string {
	c.t.Helper()
	var found string
	c.await("line "+part, func() bool {
		for line := range strings.Lines(c.stderr.String()) {
			if strings.Contains(line, part) {
				found = strings.TrimSpace(line)
			}
		}
		return found != ""
	})
	return found
}

// await waits for a condition that holds while the program runs.
func (c *child) await(what string, condition func() bool) {
	c.t.Helper()
	deadline := time.After(childStartTimeout)
	for !condition() {
		select {
		case <-c.ended:
			require.FailNow(c.t, "ended early", "%s, while waiting for %s: %v", c.cmd.Path, what, c.err)
		case <-deadline:
			require.FailNow(c.t, "did not come", "%s of %s", what, c.cmd.Path)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Signal(s))
}

// stop asks the program to end and returns when it has done so in good order.
func (c *child) stop() {
	c.t.Helper()
	c.signal(syscall.SIGTERM)
	select {
	case <-c.ended:
		require.NoError(c.t, c.err, c.cmd.Path)
	case <-time.After(childStopTimeout):
		require.FailNow(c.t, "did not end", c.cmd.Path)
	}
}
