//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	// deepProgram alone is sampled.
	deepProgram = "deep-program"
	// deepVictims are new processes, one after the other.
	deepVictims = 5
	// movedSamples are looked at of a process whose code has moved: seconds.
	movedSamples = 2000
	// movedShort of them may be on their way out of the old code and down in the new one.
	movedShort = 3
)

// compileDeep builds the program and libraries of one code: honest, with rows that end at
// every frame, and another code whose frames are larger.
func compileDeep(t *testing.T) (program, honest, ends, larger string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755)) //nolint:gosec // other users run what is in it
	build := func(name, source string, flags ...string) string {
		path := filepath.Join(dir, name)
		out, err := exec.Command("gcc", append(flags, "-O1", "-fomit-frame-pointer", "-o", path, source)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return path
	}
	library := func(name string, flags ...string) string {
		return build(name, "../../testdata/hostile/deeplib.c", append(flags, "-shared", "-fPIC")...)
	}
	return build(deepProgram, "../../testdata/hostile/deep.c"), library("libhonest.so"),
		library("libends.so", "-DENDS"), library("liblarger.so", "-DFRAME=272")
}

// startUnprivileged starts a program of a user, without the means to become another one, until the end
// of the test; it is ready.
func startUnprivileged(t *testing.T, uid uint32, program string, args ...string) (*exec.Cmd, io.Writer, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("setpriv", append([]string{"--no-new-privs", program}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { end(cmd) })
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd, stdin, lines
}

// TestHostileCode: processes that map other code over their own, in ways of which the kernel
// tells much, little or nothing. How others are walked does not change by that; how they are
// themselves, for as long as it takes to notice at most.
func TestHostileCode(t *testing.T) {
	testutil.RequireBPF(t)
	program, honest, ends, larger := compileDeep(t)

	t.Run("a file of others over its own", func(t *testing.T) {
		w := watchStacks(t, deepProgram)
		evil, _, _ := startUnprivileged(t, attacker, program, "replace", ends, honest)
		require.True(t, waitFor(containerWait, func() bool { whole, short := w.seen(evil); return whole+short >= containerSamples }), "the attacker runs")
		first, _, _ := startUnprivileged(t, quietUser, program, "stay", honest)
		w.awaitWhole(first, containerSamples) // nobody had that file before
		_, before := w.seen(first)
		for range deepVictims {
			victim, _, _ := startUnprivileged(t, quietUser, program, "stay", honest)
			w.requireWhole(victim)
			end(victim)
		}
		_, after := w.seen(first)
		require.Equal(t, before, after, "of who was there before")
		w.r.stop()
	})

	t.Run("code that moved", func(t *testing.T) {
		testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
			w := watchStacks(t, deepProgram)
			moves, stdin, stdout := startUnprivileged(t, attacker, program, "move", honest, larger)
			w.awaitWhole(moves, containerSamples)
			_, short := w.seen(moves)
			_, err := io.WriteString(stdin, "\n")
			require.NoError(t, err)
			line, err := stdout.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "moved\n", line)
			whole, _ := w.seen(moves)
			w.awaitWhole(moves, whole+movedSamples)
			_, now := w.seen(moves)
			require.LessOrEqual(bounds, now, short+movedShort, "%s", w.stack(moves))
			w.r.stop()
		})
	})
}

// TestHostileNames: names that a user has us find, of files which he may not read, or of
// functions of others. None of them leaves the host.
func TestHostileNames(t *testing.T) {
	testutil.RequireBPF(t)
	named := &frameSink{t: t, named: map[namedFrame]int{}}
	r := startReceiver(t, named, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 200 * time.Millisecond
	})
	await := func(t *testing.T, name string) {
		require.Eventually(t, func() bool { return len(named.find(name)) > 0 }, 3*time.Minute, 20*time.Millisecond, name)
	}

	t.Run("a perf map that is a link to a file of root", func(t *testing.T) {
		program := compileProgram(t, "../../testdata/hostile/perfmap.c")
		secret := filepath.Join(t.TempDir(), "secret")
		require.NoError(t, os.WriteFile(secret, []byte("10000000 1000 secret_of_root\n"), 0o600))
		evil, _, _ := startUnprivileged(t, attacker, program, "link", secret)
		own, _, _ := startUnprivileged(t, attacker, program, "own")
		for _, cmd := range []*exec.Cmd{evil, own} {
			leaveNothing(t, cmd.Process.Pid)
		}
		await(t, "own_function")
		time.Sleep(time.Second) // as long again for the other one
		require.Empty(t, named.find("secret_of_root"))
	})

	// Whoever makes a namespace of mounts shows us his files where a program has its debug file.
	t.Run("a debug file of a user for a program of root", func(t *testing.T) {
		for _, forged := range []bool{true, false} {
			program := compileProgram(t, "../../testdata/hostile/deeplib.c", "-DMAIN")
			dir, debug := filepath.Dir(program), t.TempDir()
			require.NoError(t, os.Chmod(filepath.Dir(debug), 0o755)) //nolint:gosec // other users read what is in it
			real := filepath.Join(debug, "real")
			run := func(args ...string) {
				out, err := exec.Command("objcopy", args...).CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			name := "function_of_root"
			if forged {
				name = "forged_function"
			}
			run("--redefine-sym", "descend="+name, program, real)
			run("--strip-all", "--add-gnu-debuglink="+real, program)
			require.NoError(t, os.Mkdir(filepath.Join(dir, ".debug"), 0o755)) //nolint:gosec // as packages have it
			if !forged {
				text, err := os.ReadFile(real)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, ".debug", "real"), text, 0o644)) //nolint:gosec // as packages have it
				startUnprivileged(t, attacker, program)
				await(t, name)
				time.Sleep(time.Second) // as long again for the other one, which was there before
				continue
			}
			startUnprivileged(t, attacker, "unshare", "-Urm", "sh", "-ec", `mount -t tmpfs none "$1"; cp "$2" "$1"; exec "$0"`,
				program, filepath.Join(dir, ".debug"), real)
			require.Eventually(t, func() bool { return named.mapped(program) }, 3*time.Minute, 20*time.Millisecond,
				"its debug file has been looked for where the attacker wants it")
			startUnprivileged(t, quietUser, program)
		}
		require.Empty(t, named.find("forged_function"))
	})
	r.stop()
	require.Empty(t, named.find("secret_of_root"))
	require.Empty(t, named.find("forged_function"))
}
