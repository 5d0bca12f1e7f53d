//go:build linux && (amd64 || arm64)

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

const (
	// churnPrefix begins the names of all processes: of those that are started, and of those
	// that start them.
	churnPrefix = "churn-"
	execsAtOnce = 1000 // a second: more than a small machine can do
	boxLife     = "1"  // seconds
	boxRate     = 4
)

var (
	// churnPackage is what is compiled, with all that it imports.
	churnPackage = testutil.Size("fmt", "unicode/utf8", "unicode/utf8")
	execSeconds  = testutil.Size("20", "2", "2")
	stormSeconds = testutil.Size("5", "1", "1")
	boxSeconds   = testutil.Size("20", "2", "2")
)

// A churn is processes that come and go.
type churn struct {
	name, unit string
	command    func(t *testing.T) *exec.Cmd
}

// churned is what a churn has done.
type churned struct {
	units int           // as the command prints them; else 1
	cpu   time.Duration // of all its processes
}

func (c *churn) run(t *testing.T) churned {
	t.Helper()
	cmd := c.command(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Run(), "%s: %s", c.name, &stderr)
	done := churned{units: 1, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if text := strings.TrimSpace(stdout.String()); text != "" {
		var err error
		done.units, err = strconv.Atoi(text)
		require.NoError(t, err)
		require.NotZero(t, done.units, c.name)
	}
	return done
}

// prepareChurns returns the churns, and where the stacks of their programs begin.
func prepareChurns(t *testing.T) ([]*churn, roots) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	dir := t.TempDir()
	tool := filepath.Join(dir, churnPrefix+"tool")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-o", tool, "churn/churn.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	path := func(name string) string { return filepath.Join(dir, churnPrefix+name) }
	short, err := exec.LookPath("true")
	require.NoError(t, err)
	copyFile(t, short, path("true"))
	r := roots{}
	r.addEntry(t, path("true"))
	r.addEntry(t, tool)
	for _, object := range makeImage(t, tool, filepath.Join(dir, "image")) {
		r.addEntry(t, object)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "room"), 0o755))
	goroot := linkGoTools(t, dir, r)

	driver := func(args ...string) func(*testing.T) *exec.Cmd {
		return func(*testing.T) *exec.Cmd { return exec.CommandContext(ctx, tool, args...) }
	}
	execs := func(perSecond int, seconds string) *churn {
		return &churn{
			name: fmt.Sprintf("%d execs a second", perSecond), unit: "an exec",
			command: driver("pace", path("true"), strconv.Itoa(perSecond), seconds),
		}
	}
	compile := func(t *testing.T) *exec.Cmd {
		cmd := exec.CommandContext(ctx, path("go"), "build", "-toolexec", tool, churnPackage)
		cmd.Env = append(os.Environ(), "GOROOT="+goroot, "GOCACHE="+t.TempDir(), "GOFLAGS=", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
		return cmd
	}
	return []*churn{
		// The first time, the collectors have seen none of these programs, and not all others of the machine.
		{name: "compiling " + churnPackage, unit: "a run", command: compile},
		{name: "compiling " + churnPackage + " again", unit: "a run", command: compile},
		execs(100, execSeconds),
		execs(execsAtOnce, stormSeconds),
		{name: "containers", unit: "each", command: driver("boxes", dir, strconv.Itoa(boxRate), boxSeconds, boxLife)},
	}, r
}

// linkGoTools gives the programs of Go names of ours.
func linkGoTools(t *testing.T, dir string, r roots) (goroot string) {
	t.Helper()
	env := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	goroot = env("GOROOT")
	programs, err := filepath.Glob(filepath.Join(env("GOTOOLDIR"), "*"))
	require.NoError(t, err)
	for _, program := range append(programs, filepath.Join(goroot, "bin", "go")) {
		require.NoError(t, os.Symlink(program, filepath.Join(dir, churnPrefix+filepath.Base(program))))
		r.addGo(t, program)
	}
	return goroot
}

// makeImage makes a directory with a program and the libraries that it needs, and returns
// those of them that can be entered.
func makeImage(t *testing.T, program, image string) []string {
	t.Helper()
	copyFile(t, program, filepath.Join(image, churnPrefix+"box"))
	out, err := exec.Command("ldd", program).Output()
	require.NoError(t, err)
	for _, word := range strings.Fields(string(out)) {
		if strings.HasPrefix(word, "/") {
			copyFile(t, word, filepath.Join(image, word))
		}
	}
	return []string{filepath.Join(image, churnPrefix+"box"), interpreter(t, program)}
}

// copyFile follows links: a loader is looked for under the name that it is known by.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, text, 0o755))
}
