//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

var webLoadSamples = size(1_000_000, 100_000, 100_000)

const (
	webProgram = "writer-v1-exe"
	webSamples = 2500 // of the program, before a person looks
	webTimeout = 6 * time.Minute
	// webCheckTimeout is for a browser that hangs: each step of the check has a limit of its own.
	webCheckTimeout = 15 * time.Minute
	webBrowserDir   = "../../build/web-browser"
)

// What hostile programs publish. The page must show webMarkup as text.
const (
	webMarkup   = `<img src=x onerror=window.ran=true><script>window.ran=true</script>`
	webControls = "bell\x07 null\x00 turn\u202e line\nend"
	webProcess  = `<b class=mine>evil</b>`
	webMaxBytes = 1024 // of a value that arrives
)

// TestWeb: the page of labelprof in Chromium, with the built collector and writers that
// know their shares, hostile labels among them, and then with many samples.
func TestWeb(t *testing.T) {
	testutil.RequireBPF(t)
	testutil.RequireRoot(t)
	testutil.BuildWriters(t)
	dir := t.TempDir()
	load := startChild(t, nil, labelprofProgram, "serve", "--web", "127.0.0.1:0", "--max-memory", "512", webLoadFile(t, dir))
	requireWebFigures(t, load, webURL(load))
	empty := startChild(t, nil, labelprofProgram, "serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0")

	off := startChild(t, nil, labelprofProgram, "serve", "--web", "127.0.0.1:0", webOffCPUFile(t, dir))

	truthFile := filepath.Join(dir, "truth.json")
	writer := testutil.Start(t, webProgram, "shares", "--threads", "2", "--seconds", "86400", "--truth", truthFile)
	pid := fmt.Sprint(writer.PID)
	second := startIdle(t, "writer-ctx-lib", "shares", "--threads", "1", "--seconds", "300")
	publishHostile(t)
	prof := startChild(t, nil, labelprofProgram, "serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--by", "tenant")
	url := webURL(prof)
	line := prof.awaitLine("receiving OTLP profiles at ")
	address := line[strings.LastIndexByte(line, ' ')+1:]
	exportHostile(t, address)
	// Only these: a host with much else on it would be another test.
	c := startCollector(t, address, fmt.Sprintf(
		"receivers::custom_labels: {samples_per_second: 997, targets: {include: [{pid: %d}, {pid: %d}, {pid: %d}]}}\n",
		writer.PID, second.PID, os.Getpid()))
	require.Eventually(t, func() bool { return webHits(t, url, "l.process.pid="+pid) >= webSamples }, webTimeout, 200*time.Millisecond)
	lowerPriority(t, writer.PID) // the browser needs a CPU

	pprofFile := filepath.Join(dir, "download.pb.gz")
	given, err := json.Marshal(map[string]any{
		"url": url, "pid": pid, "truth": truthShares(t, truthFile), "pprof": pprofFile,
		"pictures": testutil.Full(), "emptyUrl": webURL(empty), "offUrl": webURL(off), "loadUrl": webURL(load), "loadSamples": webLoadSamples - 1000,
		"hostile": map[string]any{"markup": webMarkup, "process": webProcess, "longBytes": webMaxBytes},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), webCheckTimeout)
	defer cancel()
	check := exec.CommandContext(ctx, "node", "check.mjs", string(given))
	check.Dir = webBrowserDir
	// The browser goes with what drives it.
	check.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check.Cancel = func() error { return syscall.Kill(-check.Process.Pid, syscall.SIGKILL) }
	out, err := check.CombinedOutput()
	fmt.Print(string(out))
	require.NoError(t, err)
	requireDownload(t, pprofFile)
	c.stop()
	prof.stop()
	require.NotContains(t, prof.stdout.String(), "\x07", "nor does the terminal get any of it")
}

// startIdle starts a writer that leaves the CPUs to the browser.
func startIdle(t *testing.T, program string, args ...string) *testutil.Writer {
	t.Helper()
	args = append([]string{"-n", "19", filepath.Join(testutil.BuildWriters(t), program)}, args...)
	return testutil.StartPath(t, "/usr/bin/nice", args...)
}

// webURL waits until the page is there.
func webURL(c *child) string {
	c.t.Helper()
	var url string
	require.Eventually(c.t, func() bool {
		_, url, _ = strings.Cut(c.stderr.String(), "flame graphs by label: ")
		return strings.HasSuffix(url, "\n")
	}, webTimeout, 10*time.Millisecond, c.stderr.String())
	return strings.TrimSpace(url)
}

// webHits asks as the page does.
func webHits(t *testing.T, url, query string) int64 {
	t.Helper()
	var v struct{ Hits [2]int64 }
	webAsk(t, url, query, &v)
	return v.Hits[0]
}

// webAsk puts an answer of the page into v.
func webAsk(t *testing.T, url, query string, v any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url + "api/view?" + query)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, v), string(body))
}

// truthShares is the part of each tenant in the CPU time that a writer has measured.
func truthShares(t *testing.T, name string) map[string]float64 {
	t.Helper()
	truth, err := testutil.ReadTruth(name)
	require.NoError(t, err)
	sum, shares := 0.0, map[string]float64{}
	for tenant, cpu := range truth.By("tenant") {
		shares[tenant] = cpu.Seconds()
		sum += cpu.Seconds()
	}
	for tenant := range shares {
		shares[tenant] /= sum
	}
	require.Len(t, shares, len(tenantNames))
	return shares
}

// publishHostile makes this process one that publishes what no program should, as labels
// of goroutines, for the collector to find.
func publishHostile(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	values := []string{webMarkup, webControls, "long " + strings.Repeat("x", 1<<20)}
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			pprof.Do(ctx, pprof.Labels("hostile_label", values[i%len(values)], webMarkup, "key"), func(context.Context) {
				for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// exportHostile sends what no collector of ours would send: names of functions, files and
// types of frames that are markup, and values of a MiB.
func exportHostile(t *testing.T, address string) {
	t.Helper()
	b := newWebBatch()
	p := b.process(66, webProcess, time.Now())
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(int32(b.dict.StackTable().Len()))
	stack := b.dict.StackTable().AppendEmpty().LocationIndices()
	stack.Append(b.frame("turn\u202enoitcnuf", "/usr/lib/\u202e\x1b[31m.so", "<svg onload=window.ran=true>"))
	stack.Append(b.frame(strings.Repeat("long_function_", 1<<16), strings.Repeat("/long", 1<<16), "native"))
	stack.Append(b.frame(webMarkup, `/tmp/<iframe src="javascript:parent.ran=true">`, "native"))
	s.AttributeIndices().Append(
		b.attribute(prefix+"hostile_label", "long "+strings.Repeat("x", 1<<20)),
		b.attribute(prefix+"hostile_label_2", `"><script>window.ran=true</script>`),
		b.attribute(prefix+"__proto__", "polluted"), b.attribute(prefix+"constructor", "x"),
		b.attribute(prefix+strings.Repeat("key", 1<<10), "of a long key"),
	)
	for range 500 {
		s.TimestampsUnixNano().Append(uint64(time.Now().UnixNano()))
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	_, err = pprofileotlp.NewGRPCClient(conn).Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(b.profiles))
	require.NoError(t, err)
}

// requireDownload checks that the file has what was on the screen: a tenant of one program.
func requireDownload(t *testing.T, name string) {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	p, err := profile.Parse(file)
	require.NoError(t, err)
	var hits int64
	for _, s := range p.Sample {
		require.Equal(t, []string{"initech"}, s.Label["tenant"])
		require.Equal(t, []string{webProgram}, s.Label["process.executable.name"])
		hits += s.Value[0]
	}
	fmt.Printf("download: %d samples of one tenant\n", hits)
	require.NotZero(t, hits)
}
