//go:build linux && (amd64 || arm64)

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/testutil/conformance"
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
	// A share of the samples, divided by the number of writers, that each of them must have.
	truthMinShare = 0.1
	// truthStall is how long nothing may come of what a test waits for: a slow machine finds
	// one label source after the other.
	truthStall    = 2 * time.Minute
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
		for i, err := range conformance.Check(p) {
			if i == 10 {
				break
			}
			assert.NoError(s.t, err, "conformance")
		}
	}
	s.visit(p)
	return nil
}

// await waits until a judge has so many samples, and enough of each writer.
func (s *truthSink) await(j *truthJudge, samples int) {
	each := int(truthMinShare * float64(samples) / float64(len(j.writers)))
	var best, least int
	var fewest string
	changed, said := time.Now(), time.Now()
	for {
		time.Sleep(20 * time.Millisecond)
		s.mu.Lock()
		judged, now, figure := j.total().judged, samples, ""
		for _, w := range j.writers {
			if w.tally.judged < now {
				now, fewest = w.tally.judged, w.name
			}
		}
		if time.Since(said) > truthProgress {
			figure, said = j.String(), time.Now()
		}
		s.mu.Unlock()
		if figure != "" {
			fmt.Println(figure)
		}
		if judged >= samples && now >= each {
			return
		}
		if judged < samples && judged > best || now < each && now > least {
			changed = time.Now()
		}
		best, least = judged, now
		require.Less(s.t, time.Since(changed), truthStall, "%d of %d samples judged, %d of %d of %s", judged, samples, now, each, fewest)
	}
}

// lowerPriority makes all threads of a process give way to others.
func lowerPriority(t *testing.T, pid int) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for _, path := range tasks {
		tid, err := strconv.Atoi(filepath.Base(path))
		require.NoError(t, err)
		require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, tid, 10))
	}
}
