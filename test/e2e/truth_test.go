//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sys/unix"
)

// truthSamplesEnv is how many samples TestFidelity judges, instead of its own number.
const truthSamplesEnv = "CUSTOM_LABELS_SAMPLES"

func truthSamples(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(truthSamplesEnv)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

const (
	// Each writer must have one in so many of the samples that were its with equal shares.
	truthMinShare = 10
	// truthMaxNotJudged bounds the share of samples that come so late that the log no longer
	// has their set.
	truthMaxNotJudged = 0.0001
	// truthStall is how long nothing may come of what a test waits for: a slow machine finds
	// one label source after the other.
	truthStall = 2 * time.Minute
	// truthProgress is how often a long run says how far it is.
	truthProgress = time.Minute
)

// truthSink is the next consumer. Unlike sink it makes nothing of the samples: visit does.
type truthSink struct {
	t     *testing.T
	visit func(pprofile.Profiles)

	mu      sync.Mutex // held by visit
	batches int
}

func (s *truthSink) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeProfiles checks the conformance of some batches; to check that of all takes
// longer than all else.
func (s *truthSink) ConsumeProfiles(_ context.Context, p pprofile.Profiles) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.batches++; s.batches <= 3 || s.batches%1000 == 0 {
		checkConformance(s.t, p)
	}
	s.visit(p)
	return nil
}

func (s *truthSink) await(what string, want int, count func() int) {
	awaitCount(s.t, &s.mu, what, want, count)
}

// awaitCount waits until there is so much of something, and says how much there is. count
// is called under a lock.
func awaitCount(t testing.TB, mu *sync.Mutex, what string, want int, count func() int) {
	best, grown := -1, time.Now()
	for {
		mu.Lock()
		now := count()
		mu.Unlock()
		if now >= want {
			return
		}
		if now > best {
			best, grown = now, time.Now()
		}
		require.Less(t, time.Since(grown), truthStall, "%s: no more than %d of %d", what, now, want)
		time.Sleep(20 * time.Millisecond)
	}
}

// lowerPriority makes all threads of a process give way to others: they have no higher priority
// than this test.
func lowerPriority(t *testing.T, pid int) {
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the nice value
	require.NoError(t, err)
	nice := max(10, 20-own)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, path := range tasks {
		tid, err := strconv.Atoi(filepath.Base(path))
		require.NoError(t, err)
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, nice); !errors.Is(err, unix.ESRCH) { // it has ended since
			require.NoError(t, err)
		}
	}
}
