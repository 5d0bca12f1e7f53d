//go:build linux && (amd64 || arm64)

package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// ddSlack is how far the log's clock and that of the samples may be apart. The program reads
// its clock before it calls the function in which a sample is taken, and after it.
const ddSlack = nativeClockError

func buildDDWriter(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "ddwriter")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".")
	build.Dir = "../realwriters/go"
	build.Env = append(os.Environ(), "GOWORK=off")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return program
}

// ddWriter is a running test/realwriters/go.
type ddWriter struct {
	cmd *exec.Cmd
	log string
}

// startDDWriter starts it, and waits until its tracer has begun.
func startDDWriter(t *testing.T, program string) *ddWriter {
	t.Helper()
	w := &ddWriter{exec.Command(program), filepath.Join(t.TempDir(), "log")}
	file, err := os.Create(w.log)
	require.NoError(t, err)
	defer file.Close()
	w.cmd.Stdout, w.cmd.Stderr = file, os.Stderr
	w.cmd.Env = append(os.Environ(), "CHILD="+filepath.Join(testutil.BuildWriters(t), "spin-plain"))
	require.NoError(t, w.cmd.Start())
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	require.Eventually(t, func() bool {
		info, err := os.Stat(w.log)
		return err == nil && info.Size() > 0
	}, time.Minute, 10*time.Millisecond)
	return w
}

// ddSpan is what the program logs of a span.
type ddSpan struct {
	id         string // decimal
	even       bool
	begin, end uint64 // Unix ns
}

// ddLog is what it says that it did.
type ddLog struct {
	spans []ddSpan // in the order of their ends
	began uint64   // the first of them
	child int64    // the program that it ran
}

// read reads the log of the program, which has ended.
func (w *ddWriter) read(t *testing.T) *ddLog {
	file, err := os.Open(w.log)
	require.NoError(t, err)
	defer file.Close()
	toUnix := monoToUnix(t)
	log := &ddLog{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text := lines.Text()
		var s ddSpan
		switch {
		case strings.HasPrefix(text, "span "):
			_, err = fmt.Sscanf(text, "span %s %t %d %d", &s.id, &s.even, &s.begin, &s.end)
			s.begin, s.end = s.begin+toUnix, s.end+toUnix
			log.spans = append(log.spans, s)
		case strings.HasPrefix(text, "child "):
			_, err = fmt.Sscanf(text, "child %d", &log.child)
		}
		require.NoError(t, err, text)
	}
	require.NoError(t, lines.Err())
	require.NotEmpty(t, log.spans)
	slices.SortFunc(log.spans, func(a, b ddSpan) int { return int(int64(a.end - b.end)) })
	log.began = slices.MinFunc(log.spans, func(a, b ddSpan) int { return int(int64(a.begin - b.begin)) }).begin
	return log
}

// ddFunction returns in which function of a request a sample was taken; "": in none.
func ddFunction(h *hit) string {
	i := slices.IndexFunc(h.functions, func(name string) bool { return name == "main.burnEven" || name == "main.burnOdd" })
	if i < 0 {
		return ""
	}
	return h.functions[i]
}

// at returns the spans that were at work at the time of a sample, in the function that
// it was taken in.
func (l *ddLog) at(h *hit) (spans []ddSpan) {
	function := ddFunction(h)
	if function == "" {
		return nil
	}
	i, _ := slices.BinarySearchFunc(l.spans, h.timeUnixNano-uint64(ddSlack), func(s ddSpan, ns uint64) int { return int(int64(s.end - ns)) })
	for _, s := range l.spans[i:] {
		if s.begin > h.timeUnixNano+uint64(10*time.Second) {
			break
		}
		if s.begin <= h.timeUnixNano+uint64(ddSlack) && s.even == (function == "main.burnEven") {
			spans = append(spans, s)
		}
	}
	return spans
}
