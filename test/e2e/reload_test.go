//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// reloadLife is how long libraries stay that take each other's place. reloadWrong bounds the share of samples
// with the name of another one's function: 0 where looks at the process follow in time, 0.07 was seen
// at six busy threads for each CPU, 0.46 if all of a batch were held against what is mapped in its end.
const (
	reloadLife  = 250 * time.Millisecond
	reloadWrong = 0.15
)

// TestReload: libraries with one layout are loaded in turn, many times in a report interval. Each sample has the name
// of the function of the one that was loaded then.
func TestReload(t *testing.T) {
	testutil.RequireBPF(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "host")
	testutil.Compile(t, program, "gcc", "-O1", "../../testdata/reload/host.c", "-ldl")
	libraries := []string{}
	for i := range 2 {
		library := filepath.Join(dir, fmt.Sprintf("plugin%d.so", i))
		testutil.Compile(t, library, "gcc", "-O1", "-shared", "-fPIC", fmt.Sprintf("-DFUNCTION=plugin_%d", i), "../../testdata/reload/plugin.c")
		libraries = append(libraries, library)
	}
	testutil.Measure(t, func(t *testing.T, bounds *testutil.Bounds) {
		measureReload(t, bounds, program, libraries)
	})
}

func measureReload(t *testing.T, bounds *testutil.Bounds, program string, libraries []string) {
	var mu sync.Mutex
	var right, wrong, unnamed int
	out := &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for _, h := range b.hits {
			number, ok := strings.CutPrefix(h.attrs["thread.name"], "plugin-")
			if !ok || h.executable != filepath.Base(program) {
				continue
			}
			switch leaf := h.functions[0]; {
			case leaf == "plugin_"+number:
				right++
			case strings.HasPrefix(leaf, "plugin_"):
				wrong++
			case !strings.Contains(strings.Join(h.functions, " "), "main"): // it may call the library's go
				unnamed++
			}
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 199
		c.ReportInterval = 2 * time.Second
		c.Attributes.ThreadName.Enabled = true
	})
	const enough, runs = 300, 10 // a busy machine has less time for each
	all := func() int {
		mu.Lock()
		defer mu.Unlock()
		return right + wrong + unnamed
	}
	var loaded, same int
	for range runs {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"8", fmt.Sprint(reloadLife.Milliseconds())}, libraries...)...)
		cmd.Stderr = os.Stderr
		printed, err := cmd.Output()
		require.NoError(t, err)
		var loads, samePlace int
		_, err = fmt.Sscan(string(printed), &loads, &samePlace)
		require.NoError(t, err)
		loaded, same = loaded+loads, same+samePlace
		if all() > enough {
			break
		}
	}
	r.stop()
	fmt.Printf("%d loads, %d where the library before was; names right: %d, wrong: %d, none: %d\n", loaded, same, right, wrong, unnamed)
	require.Greater(t, same, loaded/2)
	require.Greater(bounds, all(), enough)
	require.LessOrEqual(bounds, float64(wrong)/float64(all()), reloadWrong)
	require.GreaterOrEqual(bounds, float64(right)/float64(all()), 1-2*reloadWrong)
}
