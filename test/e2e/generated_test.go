//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// namedFrame is a line of a location.
type namedFrame struct {
	function, file, kind string
	startLine            int64
	mapping              string
}

// frameSink gathers what frames there are.
type frameSink struct {
	t     *testing.T
	mu    sync.Mutex
	named map[namedFrame]int
	files map[string]bool // that frames are of
}

func (*frameSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *frameSink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	checkConformance(s.t, p)
	d := p.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]bool{}
	}
	for _, l := range d.LocationTable().All() {
		f := namedFrame{mapping: text(d.MappingTable().At(int(l.MappingIndex())).FilenameStrindex())}
		s.files[f.mapping] = true
		for _, i := range l.AttributeIndices().All() {
			if a := d.AttributeTable().At(int(i)); text(a.KeyStrindex()) == "profile.frame.type" {
				f.kind = a.Value().Str()
			}
		}
		for _, line := range l.Lines().All() {
			fn := d.FunctionTable().At(int(line.FunctionIndex()))
			f.function, f.file, f.startLine = text(fn.NameStrindex()), text(fn.FilenameStrindex()), fn.StartLine()
			s.named[f]++
		}
	}
	return nil
}

// find returns the frames of functions whose name contains a text.
func (s *frameSink) find(text string) (found []namedFrame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.named {
		if strings.Contains(f.function, text) {
			found = append(found, f)
		}
	}
	return found
}

// mapped reports whether there is a frame of a file, named or not.
func (s *frameSink) mapped(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[path]
}

const (
	pythonSource = `import os, time
def busy_python_NAME(end):
    x = 0
    while time.monotonic() < end:
        for i in range(1000): x += i * i
    return x
print("ready", os.getpid(), flush=True)
busy_python_NAME(time.monotonic() + 600)
`
	nodeSource = `console.log("ready " + process.pid);
function busyNode(end) {
  let x = 0;
  while (Date.now() < end) for (let i = 0; i < 1e5; i++) x += i * i % 7;
  return x;
}
busyNode(Date.now() + 600000);
`
)

const javaSource = `public class Busy {
  static long busyJava(long n) { long x = 0; for (long i = 0; i < n; i++) x += i * i % 7; return x; }
  public static void main(String[] args) {
    System.out.println("ready " + ProcessHandle.current().pid());
    long end = System.nanoTime() + 600_000_000_000L, x = 0;
    while (System.nanoTime() < end) x += busyJava(100_000);
    System.out.println(x);
  }
}
`

// leaveNothing removes a program's perf map at the end of the test.
func leaveNothing(t *testing.T, pid int) {
	t.Cleanup(func() { _ = os.Remove(fmt.Sprintf("/tmp/perf-%d.map", pid)) })
}

// startJava runs a JVM that is told to write down what it has compiled, again and
// again; false if there is none.
func startJava(t *testing.T, source string) bool {
	java, err := exec.LookPath("java")
	if err != nil {
		return false
	}
	jcmd, err := exec.LookPath("jcmd")
	if err != nil {
		return false
	}
	w := testutil.StartPath(t, java, "-XX:+PreserveFramePointer", source)
	leaveNothing(t, w.PID)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Second):
				_ = exec.Command(jcmd, strconv.Itoa(w.PID), "Compiler.perfmap").Run()
			}
		}
	})
	t.Cleanup(func() { close(stop); done.Wait() })
	return true
}

// python returns a Python that writes perf maps, 3.12 and newer, or "": Debian 12
// has none.
func python(t *testing.T) string {
	names := []string{"python3", "python3.14", "python3.13", "python3.12"}
	installed, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv/versions/3.1[2-9]*/bin/python"))
	for _, name := range append(names, installed...) {
		if found, err := exec.LookPath(name); err == nil {
			if exec.Command(found, "-X", "perf", "-c", "import sys; sys.exit(not sys.is_stack_trampoline_active())").Run() == nil {
				return found
			}
		}
	}
	fmt.Println("not tried: perf maps of Python, of which there is none of 3.12 or newer")
	return ""
}

// nodeBuild is where scripts/node-writers.sh puts what it installs.
const nodeBuild = "../../build/realwriters/node"

// TestGeneratedCode: functions that runtimes compile and write down in perf maps, in
// the mount and PID namespaces that they run in.
func TestGeneratedCode(t *testing.T) {
	testutil.RequireBPF(t)
	py := python(t)
	node, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules", "node22", "bin", "node"))
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, source string) string {
		at := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(at, []byte(source), 0o644))
		return at
	}
	script := func(name string) string {
		return write(name+".py", strings.ReplaceAll(pythonSource, "NAME", name))
	}
	out := &frameSink{t: t, named: map[namedFrame]int{}}
	startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 199
		c.ReportInterval = time.Second
		c.Runtimes.Hotspot.Enabled, c.Runtimes.Python.Enabled = false, false // they would name what perf maps do
	})
	plain := script("plain")
	isolated := script("isolated")
	// The sources are not on the new /tmp.
	run := write("run.sh", `exec 4<"$2"; mount -t tmpfs none /tmp; exec "$1" -X perf /dev/fd/4`)
	if py != "" {
		leaveNothing(t, testutil.StartPath(t, py, "-X", "perf", plain).PID)
		testutil.StartPath(t, "/usr/bin/env", "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "/bin/sh", run, py, isolated)
	}
	leaveNothing(t, testutil.StartPath(t, node, "--perf-basic-prof", "--logfile="+filepath.Join(dir, "v8.log"), write("busy.js", nodeSource)).PID)
	jvm := startJava(t, write("Busy.java", javaSource))

	var found struct{ plain, isolated, node, java []namedFrame }
	require.Eventually(t, func() bool {
		found.plain, found.isolated, found.node = out.find("busy_python_plain"), out.find("busy_python_isolated"), out.find("busyNode")
		found.java = slices.DeleteFunc(out.find("busyJava"), func(f namedFrame) bool { return f.kind != "jvm" })
		return (len(found.java) > 0 || !jvm) && (len(found.plain) > 0 && len(found.isolated) > 0 || py == "") && len(found.node) > 0
	}, 3*time.Minute, 100*time.Millisecond, "%+v", &found)
	for _, f := range append(found.plain, found.isolated...) {
		require.Equal(t, "cpython", f.kind)
	}
	if py != "" {
		require.Equal(t, plain, found.plain[0].file)
		require.Equal(t, "/dev/fd/4", found.isolated[0].file)
	}
	for _, f := range found.node {
		require.Equal(t, "v8js", f.kind)
		require.Equal(t, "busy.js", path.Base(f.file))
		require.EqualValues(t, 2, f.startLine)
	}
	kernel := 0
	out.mu.Lock()
	defer out.mu.Unlock()
	for f := range out.named {
		if f.kind == "kernel" && f.mapping == "[kernel.kallsyms]" {
			kernel++
		}
	}
	fmt.Printf("functions of Python, Python in namespaces of its own, Node.js, a JVM: %d, %d, %d, %d; of the kernel: %d\n",
		len(found.plain), len(found.isolated), len(found.node), len(found.java), kernel)
	require.NotZero(t, kernel)
}
