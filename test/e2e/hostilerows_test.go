//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	// containerDepth is how many frames of its function a program of a container stays in.
	containerDepth    = 100
	containerFunction = "descend"
	// containerProgram alone is sampled: the rows of other programs do not count.
	containerProgram = "container-program"
	// containerWait is how long each step may take, on a machine that does other things.
	containerWait = 3 * time.Minute
)

var (
	// containersOfImage is how many containers of one image run at the same time.
	containersOfImage = size(60, 12, 12)
	// containersOfNode is the same of an image of Node.js, which takes 50 MB for a process.
	containersOfNode = size(60, 3, 1)
)

// nodeRowBytes is less than the rows of Node.js take, and more than those of its libraries.
const nodeRowBytes = 1 << 20

// containerSamples are looked at of each process.
var containerSamples = size(200, 30, 30)

// stackWatch judges the stacks of programs that stay in containerDepth frames of a function.
type stackWatch struct {
	t *testing.T
	r *running

	mu     sync.Mutex
	hits   map[int64]int // samples, by PID
	whole  map[int64]int // those of the function
	short  map[int64]int
	stacks map[int64][]string // an example of a short one
}

// watchStacks samples the programs of a name.
func watchStacks(t *testing.T, executable string) *stackWatch {
	t.Helper()
	w := &stackWatch{t: t, hits: map[int64]int{}, whole: map[int64]int{}, short: map[int64]int{}, stacks: map[int64][]string{}}
	w.r = startReceiver(t, &sink{t: t, visit: w.visit}, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 200 * time.Millisecond
		c.Targets.Include = []customlabelsreceiver.TargetSelector{{Executable: "**/" + executable}}
	})
	return w
}

func (w *stackWatch) visit(b flatBatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range b.hits {
		s := &b.hits[i]
		w.hits[s.pid]++
		if len(s.functions) == 0 || s.functions[0] != containerFunction {
			continue
		}
		toMain := s.attrs["custom_labels.stack_truncated"] == "" && slices.Contains(s.functions, "main")
		switch {
		case toMain && len(s.functions) > containerDepth+2:
			w.whole[s.pid]++
		case toMain && w.whole[s.pid] == 0: // on its way down
		default:
			w.short[s.pid]++
			w.stacks[s.pid] = s.functions
		}
	}
}

// seen are the whole stacks and the short ones of a process.
func (w *stackWatch) seen(cmd *exec.Cmd) (whole, short int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pid := int64(cmd.Process.Pid)
	return w.whole[pid], w.short[pid]
}

// stack is the last short one of a process.
func (w *stackWatch) stack(cmd *exec.Cmd) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stacks[int64(cmd.Process.Pid)]
}

// awaitWhole waits until a process has so many whole stacks, however many short ones before.
func (w *stackWatch) awaitWhole(cmd *exec.Cmd, n int) {
	w.t.Helper()
	if !waitFor(containerWait, func() bool { whole, _ := w.seen(cmd); return whole >= n }) {
		whole, short := w.seen(cmd)
		require.FailNow(w.t, "no whole stacks", "%d of %d, %d short, %s", whole, n, short, w.stack(cmd))
	}
}

// awaitHits waits until a process has so many samples.
func (w *stackWatch) awaitHits(cmd *exec.Cmd, n int) {
	w.t.Helper()
	require.True(w.t, waitFor(containerWait, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.hits[int64(cmd.Process.Pid)] >= n
	}), "it is sampled")
}

// requireWhole: all stacks of a process, from its first sample on.
func (w *stackWatch) requireWhole(cmd *exec.Cmd) {
	w.t.Helper()
	w.awaitWhole(cmd, containerSamples)
	whole, short := w.seen(cmd)
	fmt.Printf("%s: %d whole stacks, %d short\n", w.t.Name(), whole, short)
	require.Zero(w.t, short, "%s", w.stack(cmd))
}

// A containerHost has containers of one image: each is a mount of overlayfs of its own, and
// its program the image's.
type containerHost struct {
	*stackWatch
	base  string // where containers are
	image string
	args  []string
}

// newContainerHost makes an image: install puts its program where its argument says, and args
// make that program run and tell when.
func newContainerHost(t *testing.T, install func(program string), args ...string) *containerHost {
	t.Helper()
	testutil.RequireBPF(t)
	testutil.Need(t, testutil.Overlay)
	// Overlays want a file system below them that is none itself, which the one of
	// temporary files may be.
	base := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", base, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { _ = unix.Unmount(base, unix.MNT_DETACH) })
	h := &containerHost{base: base, image: filepath.Join(base, "image"), args: args}
	require.NoError(t, os.Mkdir(h.image, 0o755)) //nolint:gosec // as those of images
	install(filepath.Join(h.image, containerProgram))
	h.stackWatch = watchStacks(t, containerProgram)
	return h
}

// newDeepHost has an image with a program that stays in containerDepth frames.
func newDeepHost(t *testing.T) *containerHost {
	t.Helper()
	return newContainerHost(t, func(program string) {
		testutil.Compile(t, program, "gcc", "-O2", "-g", "-fomit-frame-pointer", "-momit-leaf-frame-pointer", "-static", "../../testdata/bpf/target.c")
	}, fmt.Sprintf("depth-%d", containerDepth))
}

// newNodeHost has an image of Node.js.
func newNodeHost(t *testing.T) *containerHost {
	t.Helper()
	node := filepath.Join(nodeBuild, "node_modules", "node24", "bin", "node")
	return newContainerHost(t, func(program string) { copyFile(t, node, program, 0o755) },
		"--eval", `require("fs").writeSync(1, "ready\n"); for (;;) { }`)
}

// A container runs the image's program.
type container struct {
	h    *containerHost
	root string // its mount
	cmd  *exec.Cmd
}

func (h *containerHost) container() *container {
	h.t.Helper()
	dir, err := os.MkdirTemp(h.base, "container-")
	require.NoError(h.t, err)
	c := &container{h: h, root: filepath.Join(dir, "root")}
	for _, name := range []string{"root", "upper", "work"} {
		require.NoError(h.t, os.Mkdir(filepath.Join(dir, name), 0o755)) //nolint:gosec // as those of images
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work", h.image, dir, dir)
	require.NoError(h.t, unix.Mount("overlay", c.root, "overlay", 0, options))
	h.t.Cleanup(func() { _ = unix.Unmount(c.root, unix.MNT_DETACH) })
	c.cmd = h.start(filepath.Join(c.root, containerProgram))
	return c
}

// start runs a program of a container until the end of the test.
func (h *containerHost) start(path string) *exec.Cmd {
	h.t.Helper()
	cmd := exec.Command(path, h.args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := cmd.StdoutPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n') // it is where it stays
	require.NoError(h.t, err)
	h.t.Cleanup(func() { end(cmd) })
	return cmd
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // says that it was killed
}

func waitFor(most time.Duration, is func() bool) bool {
	for begin := time.Now(); time.Since(begin) < most; time.Sleep(20 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// TestSharedRows: the files of an image are those of all its containers. Whichever ends,
// what is known of them holds for the others; and it is held once.
func TestSharedRows(t *testing.T) {
	t.Run("one of two containers ends", func(t *testing.T) {
		h := newDeepHost(t)
		a := h.container()
		h.awaitWhole(a.cmd, containerSamples)
		b := h.container()
		h.requireWhole(b.cmd)
		end(b.cmd)
		require.True(t, waitFor(containerWait, func() bool { return unix.Unmount(b.root, 0) == nil }), "something holds it")
		for range 3 {
			next := h.start(filepath.Join(a.root, containerProgram))
			h.requireWhole(next)
			end(next)
		}
		end(a.cmd)
		c := h.container()
		h.requireWhole(c.cmd)
		h.r.stop()
	})
	t.Run("many containers of one image", func(t *testing.T) {
		h := newDeepHost(t)
		first := h.container()
		h.awaitWhole(first.cmd, containerSamples)
		h.awaitRows(0)
		h.requireRowsOfOne(first, containersOfImage, func(c *container) {
			h.awaitWhole(c.cmd, 3)
			end(c.cmd)
			_, short := h.seen(c.cmd)
			require.Zero(t, short, "%s", h.stack(c.cmd))
		})
		h.r.stop()
	})
	t.Run("many containers of Node.js", func(t *testing.T) {
		h := newNodeHost(t)
		first := h.container()
		h.awaitHits(first.cmd, containerSamples)
		h.awaitRows(nodeRowBytes)
		h.requireRowsOfOne(first, containersOfNode, func(c *container) {
			h.awaitHits(c.cmd, containerSamples)
			end(c.cmd)
		})
		h.r.stop()
	})
}

// awaitRows waits until there are so many bytes of rows, and none are still to come.
func (h *containerHost) awaitRows(bytes int64) {
	h.t.Helper()
	tables, since := int64(0), time.Now()
	require.True(h.t, waitFor(containerWait, func() bool {
		now := h.r.metric("unwind_tables")[""]
		if now != tables || h.r.metric("background_waiting", "work")["unwind_rows"] > 0 {
			tables, since = now, time.Now()
		}
		return time.Since(since) > time.Second && h.r.metric("unwind_used")[""] > bytes
	}), "%d tables of rows", tables)
}

// requireRowsOfOne starts further containers, and has each sampled: they have the rows of the
// first.
func (h *containerHost) requireRowsOfOne(first *container, containers int, sampled func(*container)) {
	h.t.Helper()
	before, bytes := h.r.metric("unwind_tables")[""], h.r.metric("unwind_used")[""]
	all := []*container{first}
	for len(all) < containers {
		c := h.container()
		require.NoError(h.t, unix.Setpriority(unix.PRIO_PROCESS, c.cmd.Process.Pid, hostileNice))
		all = append(all, c)
	}
	for _, c := range all[1:] {
		sampled(c)
	}
	tables, now := h.r.metric("unwind_tables")[""], h.r.metric("unwind_used")[""]
	fmt.Printf("rows of 1 container: %d tables, %d bytes; of %d: %d tables, %d bytes\n", before, bytes, len(all), tables, now)
	require.NotZero(h.t, bytes)
	require.Equal(h.t, before, tables)
	require.Equal(h.t, bytes, now)
}
