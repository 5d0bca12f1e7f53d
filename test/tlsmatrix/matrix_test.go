//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/test/tlsmatrix/cell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// corpusEnv names the directory of the built corpus, for machines where it
	// is not at its place in the repository.
	corpusEnv = "CUSTOM_LABELS_TLS_CORPUS"

	// workersPerCPU is how many programs run at a time: most of a cell's time is
	// waiting for its samples to be read.
	workersPerCPU = 4

	maxFailures = 60 // that are told in full
)

func corpusDir(t *testing.T) string {
	dir := os.Getenv(corpusEnv)
	if dir == "" {
		dir = filepath.Join("..", "..", "build", "tls")
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	dir, err = filepath.EvalSymlinks(dir) // as processes show it
	require.NoError(t, err, "make tls-corpus builds it")
	return dir
}

func hostArch() string {
	if runtime.GOARCH == "arm64" {
		return cell.AArch64
	}
	return cell.X86
}

// Every cell agrees with its program: none is skipped.
func TestMatrix(t *testing.T) {
	testutil.RequireBPF(t)
	dir := corpusDir(t)
	var cells []cell.Cell
	for _, target := range cell.Targets(hostArch()) {
		cells = append(cells, cell.List(target)...)
	}
	began := time.Now()
	s, err := startSampling()
	require.NoError(t, err)
	verdicts := judgeAll(cells, dir, s)
	require.NoError(t, s.stop())
	failures := 0
	for i := range verdicts {
		v := &verdicts[i]
		v.finish(s)
		if v.err == nil {
			continue
		}
		if failures++; failures <= maxFailures {
			t.Errorf("%s: %v", v.cell.Dir(), v.err)
		}
	}
	t.Log(report(hostArch(), verdicts, time.Since(began)))
	if failures > 0 {
		t.Errorf("%d cells do not agree", failures)
	}
}

func judgeAll(cells []cell.Cell, dir string, s *sampling) []verdict {
	verdicts := make([]verdict, len(cells))
	next := make(chan int)
	var wg sync.WaitGroup
	for range workersPerCPU * runtime.NumCPU() {
		wg.Go(func() {
			for i := range next {
				verdicts[i] = judge(cells[i], dir, s)
			}
		})
	}
	for i := range cells {
		next <- i
	}
	close(next)
	wg.Wait()
	return verdicts
}
