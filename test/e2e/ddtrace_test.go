//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

const (
	ddTime       = 20 * time.Second
	ddMinSamples = 2000
	ddFound      = 2 // batches in which the program may be found
)

// ddSpan is what the program logs of a span.
type ddSpan struct{ even bool }

// TestRealWriterDDTraceGo: a service traced by dd-trace-go. Each sample of a request
// has the ids of a span that the service logged, one of those that run the function
// in which the sample was taken, and the resource that dd-trace-go publishes.
func TestRealWriterDDTraceGo(t *testing.T) {
	testutil.RequireBPF(t)
	program := filepath.Join(t.TempDir(), "ddwriter")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = "../realwriters/go"
	build.Env = append(os.Environ(), "GOWORK=off")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	log := filepath.Join(t.TempDir(), "log")
	cmd := startLogged(t, program, log)

	var hits []hit
	batches := 0
	out := &sink{t: t, visit: func(b flatBatch) {
		if batches++; batches <= ddFound {
			return
		}
		for i := range b.hits {
			if b.hits[i].pid == int64(cmd.Process.Pid) {
				hits = append(hits, b.hits[i])
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 999
		c.ReportInterval = time.Second
	})
	time.Sleep(ddTime)
	r.stop() // before the program ends: all that is sampled gets logged
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())

	spans := readSpans(t, log)
	checked, mismatches := 0, 0
	for i := range hits {
		h := &hits[i]
		parity := slices.IndexFunc(h.functions, func(name string) bool { return name == "main.burnEven" || name == "main.burnOdd" })
		if parity < 0 {
			continue
		}
		checked++
		span, ok := spans[h.attrs[prefix+"span id"]]
		good := assert.True(t, ok, "no span %q was logged", h.attrs[prefix+"span id"]) &&
			assert.Equal(t, "GET /", h.attrs[prefix+"trace endpoint"]) &&
			assert.Equal(t, span.even, h.functions[parity] == "main.burnEven") &&
			assert.Equal(t, "dd-shop", h.resource["service.name"])
		if !good {
			mismatches++
		}
	}
	fmt.Printf("dd-trace-go: %d spans, %d samples checked, %d mismatches\n", len(spans), checked, mismatches)
	require.Zero(t, mismatches)
	require.GreaterOrEqual(t, checked, ddMinSamples)
	testutil.ReportLabelAssertions(t.Name(), checked)
}

// startLogged starts a program whose output goes to a file, and waits for the first
// line.
func startLogged(t *testing.T, program, log string) *exec.Cmd {
	file, err := os.Create(log)
	require.NoError(t, err)
	defer file.Close()
	cmd := exec.Command(program)
	cmd.Stdout, cmd.Stderr = file, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	require.Eventually(t, func() bool {
		info, err := os.Stat(log)
		return err == nil && info.Size() > 0
	}, time.Minute, 10*time.Millisecond)
	return cmd
}

// readSpans reads the log, by span id.
func readSpans(t *testing.T, log string) map[string]ddSpan {
	file, err := os.Open(log)
	require.NoError(t, err)
	defer file.Close()
	spans := map[string]ddSpan{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 4 && f[0] == "span" {
			even, err := strconv.ParseBool(f[3])
			require.NoError(t, err)
			spans[f[1]] = ddSpan{even}
		}
	}
	require.NoError(t, lines.Err())
	return spans
}
