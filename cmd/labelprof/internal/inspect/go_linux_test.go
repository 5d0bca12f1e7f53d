// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package inspect

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/customlabels/otelcol-customlabels/internal/testutil"
)

// Goroutines that change their labels all the time: what is shown of a thread is one
// of the sets that they had, and whole.
func TestInspectGo(t *testing.T) {
	enough := testutil.Size(20, 3, 3)
	for _, path := range testutil.BuildGoWriters(t) {
		name := strings.TrimPrefix(filepath.Base(path), "gowriter-")
		t.Run(name, func(t *testing.T) {
			w := testutil.StartPath(t, path, "-many", "-seconds", "120")
			pid := strconv.Itoa(w.PID)
			seen := map[string]bool{}
			for end := time.Now().Add(time.Minute); len(seen) < enough; {
				require.True(t, time.Now().Before(end), "%d sets of labels in a minute", len(seen))
				code, text, stderr := inspected(t, "--json", pid)
				require.Zero(t, code, stderr)
				r := parseReport(t, text)
				require.Len(t, r.Sources, 1)
				require.Equal(t, "go_labels", r.Sources[0].ABI)
				for _, thread := range r.Threads {
					for _, reading := range thread.Readings {
						require.NotContains(t, []string{"fault", "invalid"}, reading.Outcome, reading.Reason)
						if len(reading.Labels) > 0 {
							seen[requireGoLabels(t, reading.Labels)] = true
						}
					}
				}
			}
			_, text, _ := inspected(t, pid)
			require.Regexp(t, `source 1  go_labels: runtime.g.labels\n  file +`+path+`\n  runtime +go1\.\d+.*, layout from .*\n  location +(thread pointer|register)`, text)
			require.Regexp(t, `TID +THREAD +VARIABLE +NOW`, text)
		})
	}
}

// requireGoLabels checks a set of testdata/gowriters, and returns what identifies it.
func requireGoLabels(t *testing.T, labels []labelText) string {
	t.Helper()
	set := map[string]string{}
	for _, l := range labels {
		set[l.key] = l.value
	}
	check := set["check"]
	var id, n int
	_, err := fmt.Sscanf(check, "%d:%d:", &id, &n)
	require.NoError(t, err, check)
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d:%d", id, n)
	require.Equal(t, fmt.Sprintf("%d:%d:%016x", id, n, hash.Sum64()), check)
	require.Equal(t, fmt.Sprint("burn", (id+n)%4), set["fn"])
	require.Equal(t, strings.Repeat("p", n%50), set["pad"])
	require.Len(t, set, 3+n%27)
	for k := range n % 27 {
		require.Equal(t, fmt.Sprint("v", n), set[fmt.Sprint("k", k)])
	}
	return check
}
