//go:build linux && (amd64 || arm64)

package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
	"github.com/customlabels/otelcol-customlabels/receiver/customlabelsreceiver"
)

// TestReplacedProgram: a file that gets other contents of the same size and, as by cp -p,
// the same modification time. Each process has the labels of the contents that it runs.
func TestReplacedProgram(t *testing.T) {
	testutil.RequireBPF(t)
	const samples = 100 // of each contents
	var contents [2][]byte
	for i, flags := range [][]string{nil, {"-DSWAP"}} {
		path := filepath.Join(t.TempDir(), "program")
		out, err := exec.Command("gcc", append(flags, "-O1", "-rdynamic", "-o", path, "../../testdata/replaced/program.c")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		contents[i], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	require.Equal(t, len(contents[0]), len(contents[1]))
	require.False(t, bytes.Equal(contents[0], contents[1]))

	var mu sync.Mutex
	tenants := map[int64]map[string]int{}
	out := &sink{t: t, visit: func(b flatBatch) {
		mu.Lock()
		defer mu.Unlock()
		for i := range b.hits {
			h := &b.hits[i]
			if tenants[h.pid] == nil {
				tenants[h.pid] = map[string]int{}
			}
			tenants[h.pid][h.attrs[prefix+"tenant"]]++
		}
	}}
	r := startReceiver(t, out, func(c *customlabelsreceiver.Config) {
		c.SamplesPerSecond = 997
		c.ReportInterval = 200 * time.Millisecond
	})
	seen := func(pid int) map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(tenants[int64(pid)])
	}
	path := filepath.Join(userDir(t, attacker), "program")
	require.NoError(t, os.WriteFile(path, contents[0], 0o700)) //nolint:gosec // a program
	require.NoError(t, os.Chown(path, attacker, attacker))
	before := time.Unix(1, 0)
	var pids []int
	for turn := range 4 {
		// In place: the inode stays.
		require.NoError(t, os.WriteFile(path, contents[turn%2], 0o700)) //nolint:gosec // a program
		require.NoError(t, os.Chtimes(path, before, before))
		cmd := exec.Command(path, "300")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: attacker, Gid: attacker}}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		pids = append(pids, cmd.Process.Pid)
		require.Eventually(t, func() bool {
			n := seen(cmd.Process.Pid)
			return n["right"]+n["wrong"] >= samples
		}, 2*time.Minute, 20*time.Millisecond, "of %d samples", samples)
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	r.stop()
	for turn, pid := range pids {
		fmt.Printf("contents %d: %v\n", turn%2, seen(pid))
		require.Zero(t, seen(pid)["wrong"])
	}
}
