//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	publishStart   = time.Minute // for a runtime on a busy machine
	publishClients = 2
	// publishRest is how long what a request has left behind may go on: in Node.js the end of its
	// connection is still its context's.
	publishRest = 300 * time.Millisecond
)

var (
	publishPhase   = time.Duration(size(3000, 600, 1500)) * time.Millisecond // requests of one tenant
	publishSeconds = strconv.Itoa(size(4, 2, 2))                             // that labelprof check watches
	publishSamples = size(200, 20, 5)                                        // with labels, of each tenant
)

// example is a folder of examples/publish. command builds it into dir, and says how its
// server is started.
type example struct {
	name    string
	folder  string // "": its name
	service string // service.name of its process context; "" if it has none
	command func(t *testing.T, folder, dir string) *exec.Cmd
}

func examples() []example {
	made := func(t *testing.T, folder, dir string) *exec.Cmd {
		build(t, folder, "make", "-s", "OUT="+dir)
		return exec.Command(filepath.Join(dir, "server"))
	}
	all := []example{
		{name: "c", command: made},
		{name: "cpp", command: made},
		{name: "rust", command: made},
		{name: "go", service: "shop", command: func(t *testing.T, folder, dir string) *exec.Cmd {
			build(t, folder, "go", "build", "-o", filepath.Join(dir, "server"), ".")
			return exec.Command(filepath.Join(dir, "server"))
		}},
		{name: "python", service: "shop", command: func(_ *testing.T, folder, _ string) *exec.Cmd {
			python := "/usr/bin/python3" // rather than one that a shim starts
			if _, err := os.Stat(python); err != nil {
				python = "python3"
			}
			return exec.Command(python, "-B", filepath.Join(folder, "server.py"))
		}},
		{name: "java-jni", folder: "java", service: "shop", command: func(t *testing.T, folder, dir string) *exec.Cmd {
			build(t, folder, "javac", "-nowarn", "-d", dir, "Server.java", "labels/Labels.java", "labels/JniNative.java")
			return exec.Command("java", "-cp", dir, "Server")
		}},
	}
	if jdk := newJDK(); jdk != "" {
		all = append(all, example{name: "java-ffm", folder: "java", service: "shop", command: func(t *testing.T, folder, dir string) *exec.Cmd {
			build(t, folder, filepath.Join(jdk, "javac"), "-nowarn", "-d", dir, "Server.java", "labels/Labels.java", "labels/FfmNative.java", "labels/JniNative.java")
			require.NoError(t, os.Remove(filepath.Join(dir, "labels", "JniNative.class"))) // which it would fall back to
			return exec.Command(filepath.Join(jdk, "java"), "--enable-native-access=ALL-UNNAMED", "-cp", dir, "Server")
		}})
	} else {
		fmt.Println("left out: java-ffm, for which no JDK of Java 22 or newer is installed")
	}
	if runtime.GOARCH != "amd64" {
		fmt.Println("left out: nodejs, of which npm has this Node.js for x86-64 only")
		return all
	}
	return append(all, example{name: "nodejs", service: "shop", command: func(t *testing.T, folder, _ string) *exec.Cmd {
		return nodeExample(t, folder, "node24")
	}})
}

func nodeExample(t *testing.T, folder, version string) *exec.Cmd {
	modules, err := filepath.Abs(filepath.Join(nodeBuild, "node_modules"))
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(modules, version, "bin", "node"), filepath.Join(folder, "server.js"))
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return cmd
}

// unpublishable are examples where nothing can be published: a machine that the code does not know,
// a directory for the library that cannot be written to, Node.js without async context frames.
func unpublishable() []example {
	const unknownMachine = "import platform, runpy, sys; platform.machine = lambda: 'other'; sys.path.insert(0, 'FOLDER'); runpy.run_path('FOLDER/server.py', run_name='__main__')"
	all := []example{
		{name: "python", command: func(_ *testing.T, folder, _ string) *exec.Cmd {
			return exec.Command("python3", "-B", "-c", strings.ReplaceAll(unknownMachine, "FOLDER", folder))
		}},
		{name: "java", command: func(t *testing.T, folder, dir string) *exec.Cmd {
			build(t, folder, "javac", "-nowarn", "-d", dir, "Server.java", "labels/Labels.java", "labels/JniNative.java")
			return exec.Command("java", "-Djava.io.tmpdir=/proc", "-cp", dir, "Server")
		}},
	}
	if runtime.GOARCH != "amd64" {
		return all
	}
	return append(all, example{name: "nodejs", command: func(t *testing.T, folder, _ string) *exec.Cmd {
		return nodeExample(t, folder, "node22")
	}})
}

// newJDK is the directory with the programs of a JDK that has the FFM API; "" if there is none.
func newJDK() string {
	compilers, _ := filepath.Glob("/usr/lib/jvm/*/bin/javac")
	for _, javac := range compilers {
		if exec.Command(javac, "--release", "22", "-version").Run() == nil {
			return filepath.Dir(javac)
		}
	}
	return ""
}

func build(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, text)
}

// published is a request of a tenant, all of which go to one route.
type published struct{ tenant, route string }

var (
	acme   = published{"acme", "/browse"}
	globex = published{"globex", "/checkout"}
)

// publisher is the server of an example.
type publisher struct {
	example
	pid    int
	url    string
	stderr string // a file
	// when each tenant alone had requests, Unix ns
	alone map[published][2]uint64
}

// TestPublish: what examples/publish tells people to copy. Each server gets requests of one
// tenant, then of another, then of both at once. Samples with labels have those of one
// request, never a part or a mixture, and while one tenant is alone, no other's.
// labelprof check finds that all rules hold. Where nothing can be published, a server works as well.
func TestPublish(t *testing.T) {
	var hits []hit
	out := &sink{t: t, visit: func(b flatBatch) { hits = append(hits, b.hits...) }}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 499
		c.ReportInterval = 500 * time.Millisecond
		c.Symbolize = customlabelsreceiver.SymbolizeNone
	})
	var servers []*publisher
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			p := startPublisher(t, e)
			p.request(t, 20, 200*time.Millisecond, acme, globex) // found, and warm
			for _, one := range []published{acme, globex} {
				time.Sleep(publishRest)
				began := uint64(time.Now().UnixNano())
				p.request(t, 0, publishPhase, one)
				p.alone[one] = [2]uint64{began, uint64(time.Now().UnixNano())}
			}
			p.request(t, 0, publishPhase, acme, globex)
			p.check(t)
			servers = append(servers, p)
		})
	}
	for _, e := range unpublishable() {
		t.Run("unpublishable-"+e.name, func(t *testing.T) {
			p := startPublisher(t, e)
			p.request(t, 3, 0, acme, globex) // are answered
			said := fileText(p.stderr)
			require.Equal(t, 1, strings.Count(said, "no labels for profilers"), "it is said, once: %s", said)
		})
	}
	if runtime.GOARCH == "amd64" {
		for _, w := range nodeWriters() {
			t.Run("broken-nodejs-"+w.name(), func(t *testing.T) { requireBrokenNode(t, &w) })
		}
	}
	r.stop()
	for _, p := range servers {
		t.Run(p.name+"/samples", func(t *testing.T) { p.judge(t, hits) })
	}
}

func startPublisher(t *testing.T, e example) *publisher {
	t.Helper()
	if e.folder == "" {
		e.folder = e.name
	}
	folder, err := filepath.Abs(filepath.Join("../../examples/publish", e.folder))
	require.NoError(t, err)
	dir := t.TempDir()
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = stderr.Close() })
	cmd := e.command(t, folder, dir)
	cmd.Args = append(cmd.Args, "0")
	cmd.Stderr = stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- text
		_, _ = io.Copy(io.Discard, stdout)
	}()
	var port int
	select {
	case text := <-line:
		_, err = fmt.Sscanf(text, "listening on %d\n", &port)
		require.NoError(t, err, "%q %s", text, fileText(stderr.Name()))
	case <-time.After(publishStart):
		require.Fail(t, "it does not listen", fileText(stderr.Name()))
	}
	return &publisher{example: e, pid: cmd.Process.Pid, url: "http://127.0.0.1:" + strconv.Itoa(port), stderr: stderr.Name(), alone: map[published][2]uint64{}}
}

// fileText is what a file has, for messages.
func fileText(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

// request sends requests of some tenants for a while, at least so many of each.
func (p *publisher) request(t *testing.T, least int, d time.Duration, of ...published) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), publishStart)
	defer cancel()
	end := time.Now().Add(d)
	errs := make(chan error, len(of)*publishClients)
	var clients sync.WaitGroup
	for _, one := range of {
		for range publishClients {
			clients.Go(func() {
				for n := 0; n < least || time.Now().Before(end); n++ {
					if err := p.send(ctx, one); err != nil {
						errs <- err
						return
					}
				}
			})
		}
	}
	clients.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

func (p *publisher) send(ctx context.Context, one published) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+one.route, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("X-Tenant", one.tenant)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", p.url, answer.Status)
	}
	return err
}

// check has labelprof judge the server while it has requests.
func (p *publisher) check(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(root, "bin", "labelprof"), "check", "--seconds", publishSeconds, strconv.Itoa(p.pid))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start(), "make e2e-publish builds it")
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			require.NoError(t, err, "%s%s", stdout.String(), stderr.String())
			lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
			fmt.Printf("%-8s %s\n", p.name, lines[len(lines)-1])
			return
		default:
			p.request(t, 1, 100*time.Millisecond, acme, globex)
		}
	}
}

// label is that of a sample: attributes of thread contexts have their own names.
func (p *publisher) label(h *hit, key string) string {
	if value, ok := h.attrs[key]; ok {
		return value
	}
	return h.attrs[prefix+key]
}

// judge looks at the samples of a server.
func (p *publisher) judge(t *testing.T, hits []hit) {
	seen := map[published]int{}
	none, between := 0, 0
	for i := range hits {
		h := &hits[i]
		if h.pid != int64(p.pid) {
			continue
		}
		one := published{p.label(h, "tenant"), p.label(h, "route")}
		if one == (published{}) {
			none++
			continue
		}
		if one.route == "" && (one.tenant == acme.tenant || one.tenant == globex.tenant) { // its scope has begun, the one in it has not
			between++
			continue
		}
		require.Contains(t, []published{acme, globex}, one)
		for alone, span := range p.alone {
			if h.timeUnixNano > span[0] && h.timeUnixNano < span[1] {
				require.Equal(t, alone, one, "no other had requests")
			}
		}
		if p.service != "" {
			require.Equal(t, p.service, h.resource["service.name"])
		}
		seen[one]++
	}
	fmt.Printf("%-8s %d samples of %s, %d of %s, %d of no request\n", p.name, seen[acme], acme.tenant, seen[globex], globex.tenant, none)
	require.Less(t, between, (seen[acme]+seen[globex])/100, "samples between two scopes")
	require.GreaterOrEqual(t, seen[acme], publishSamples)
	require.GreaterOrEqual(t, seen[globex], publishSamples)
	testutil.ReportLabelAssertions(t.Name(), seen[acme]+seen[globex])
}
