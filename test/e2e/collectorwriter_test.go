//go:build linux && (amd64 || arm64)

package e2e

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// spinLink is what a thread context in mode spin has: testdata/writers/mode_spin.c.
var spinLink = link{
	traceID: [16]byte{0x5b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	spanID:  [8]byte{0x5c, 1, 2, 3, 4, 5, 6, 7},
}

// tenantRoutes and tenantFunctions are the workload of mode shares: testdata/writers/workload.c.
var (
	tenantRoutes = map[string][]string{
		"acme":     {"/checkout", "/browse"},
		"globex":   {"/upload", "/stream"},
		"initech":  {"/login", "/authorize"},
		"umbrella": {"/search"},
	}
	tenantNames     = []string{"acme", "globex", "initech", "umbrella"}
	tenantFunctions = map[string]string{
		"acme_serve": "acme", "globex_serve": "globex", "initech_serve": "initech", "umbrella_serve": "umbrella",
	}
)

// A collectorWriter is a running writer and what arrived about it.
type collectorWriter struct {
	*testutil.Writer
	variant     string
	spin        bool   // a fixed link; otherwise mode shares
	path        string // of the executable
	containerID string

	hits, labelled, linked int
	named                  int // attributes of a thread context
	leaves                 map[string]int
}

// startCollectorWriters starts one of each ABI and load mode, and one with a fixed link; by PID.
func startCollectorWriters(t *testing.T) map[int64]*collectorWriter {
	t.Helper()
	byPID := map[int64]*collectorWriter{}
	add := func(variant string, spin bool, args ...string) {
		w := &collectorWriter{Writer: testutil.Start(t, variant, append(args, "--seconds", "86400")...), variant: variant, spin: spin, leaves: map[string]int{}}
		var err error
		w.path, err = os.Readlink(fmt.Sprintf("/proc/%d/exe", w.PID))
		require.NoError(t, err)
		cgroups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", w.PID))
		require.NoError(t, err)
		w.containerID = regexp.MustCompile(`[0-9a-f]{64}`).FindString(string(cgroups))
		byPID[int64(w.PID)] = w
	}
	for _, abi := range []string{"v0", "v1", "ctx"} {
		for _, load := range []string{"exe", "lib", "dlopen"} {
			add("writer-"+abi+"-"+load, false, "shares")
		}
	}
	add("writer-ctx-exe", true, "spin", "--labels", "2")
	return byPID
}

// check judges one hit; it counts as labelled when its labels were proved right.
func (w *collectorWriter) check(t *testing.T, h *hit) {
	w.hits++
	require.Equal(t, w.path, h.resource["process.executable.path"])
	require.Equal(t, filepath.Base(w.path), h.resource["process.executable.name"])
	require.Equal(t, fmt.Sprint(w.PID), h.resource["process.pid"])
	require.Equal(t, "0", h.resource["process.real_user.id"])
	require.Equal(t, w.containerID, h.resource["container.id"])
	_, err := os.Stat(fmt.Sprintf("/proc/%d/task/%s", w.PID, h.attrs["thread.id"]))
	require.NoError(t, err, "thread.id is a thread of the process")
	w.checkLink(t, h)
	w.leaves[h.functions[0]]++
	switch {
	case w.spin:
		w.checkSpin(t, h)
	default:
		w.checkShares(t, h)
	}
}

// checkLink compares the link with the attributes that repeat it.
func (w *collectorWriter) checkLink(t *testing.T, h *hit) {
	if h.link == (link{}) {
		require.NotContains(t, h.attrs, "trace_id")
		require.NotContains(t, h.attrs, "span_id")
		return
	}
	w.linked++
	require.Contains(t, w.variant, "-ctx-", "only a thread context has ids")
	require.Equal(t, hex.EncodeToString(h.link.traceID[:]), h.attrs["trace_id"])
	require.Equal(t, hex.EncodeToString(h.link.spanID[:]), h.attrs["span_id"])
}

func (w *collectorWriter) checkSpin(t *testing.T, h *hit) {
	if !slices.Contains(h.functions, "spin") {
		return // the main thread
	}
	if w.labelled == 0 && h.link == (link{}) {
		return // the receiver has not met it yet
	}
	require.Equal(t, spinLink, h.link)
	w.labelled++
}

// checkShares compares the labels with the function that runs: it belongs to a tenant.
func (w *collectorWriter) checkShares(t *testing.T, h *hit) {
	tenant, route := h.attrs[prefix+"tenant"], h.attrs[prefix+"route"]
	if h.link != (link{}) {
		i, j := testutil.SharesTenant(h.link.traceID)
		require.Less(t, uint(i), uint(len(tenantNames)), "link %x", h.link)
		tenant = tenantNames[i]
		require.Less(t, uint(j), uint(len(tenantRoutes[tenant])), "link %x", h.link)
		route = tenantRoutes[tenant][j]
		if name, ok := h.attrs["tenant"]; ok { // not before the process context was read
			require.Equal(t, tenant, name)
			require.Equal(t, route, h.attrs["route"])
			require.Equal(t, "true", h.attrs["trace_sampled"])
			w.named++
		}
	}
	if tenant != "" || route != "" {
		require.Contains(t, tenantRoutes[tenant], route, "labels of different sets")
	}
	if w.labelled == 0 && tenant == "" {
		return // the receiver has not met it yet
	}
	for _, function := range h.functions {
		if runs, ok := tenantFunctions[function]; ok {
			require.Equal(t, runs, tenant, "%s in %s", w.variant, function)
			w.labelled++
			return
		}
	}
}

// hottest lists the most frequent leaves.
func (w *collectorWriter) hottest() string {
	names := slices.SortedFunc(maps.Keys(w.leaves), func(a, b string) int {
		return cmp.Compare(w.leaves[b], w.leaves[a])
	})
	var list []string
	for _, name := range names[:min(3, len(names))] {
		list = append(list, fmt.Sprintf("%s %d", name, w.leaves[name]))
	}
	return strings.Join(list, ", ")
}
