//go:build linux && (amd64 || arm64)

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// fleetAgent is the attribute by which resources tell the agents of a test apart.
const fleetAgent = "host.name"

// A fleetSample is what makes a sample of an agent this one and no other.
type fleetSample struct {
	agent, thread string
	pid           int64
	timeUnixNano  uint64
}

// A fleetEnd is what has arrived at one end of a fleet.
type fleetEnd struct {
	mu       sync.Mutex
	requests int
	samples  map[fleetSample]fleetContent
	arrivals map[fleetSample]int
}

// A fleetContent is what was said of a sample.
type fleetContent struct{ tenant, all string }

func newFleetEnd() *fleetEnd {
	return &fleetEnd{samples: map[fleetSample]fleetContent{}, arrivals: map[fleetSample]int{}}
}

func (e *fleetEnd) add(b flatBatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests++
	for i := range b.hits {
		h := &b.hits[i]
		s := fleetSample{h.resource[fleetAgent], h.attrs["thread.id"], h.pid, h.timeUnixNano}
		e.samples[s] = fleetContent{h.attrs[prefix+"tenant"], fmt.Sprint(h.resource, h.attrs, h.link, h.functions)}
		e.arrivals[s]++
	}
}

// read adds what has come since, of requests as agents have sent them.
func (e *fleetEnd) read(t *testing.T, requests [][]byte) {
	t.Helper()
	for _, data := range requests[e.requests:] {
		request := pprofileotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(data))
		b, err := flatten(request.Profiles())
		require.NoError(t, err)
		e.add(b)
	}
}

// has reports whether all that another end has arrived here, too.
func (e *fleetEnd) has(other *fleetEnd) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range other.samples {
		if e.arrivals[s] == 0 {
			return false
		}
	}
	return true
}

// tenants counts the samples of each tenant, each once.
func (e *fleetEnd) tenants() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	sums := map[string]int{}
	for _, said := range e.samples {
		if slices.Contains(tenantNames, said.tenant) {
			sums[said.tenant]++
		}
	}
	return sums
}

// of counts the samples of an agent.
func (e *fleetEnd) of(agent string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.samples {
		if s.agent == agent {
			n++
		}
	}
	return n
}

// again counts arrivals after the first, and most is the most often that one has arrived.
func (e *fleetEnd) again() (n, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, arrivals := range e.arrivals {
		n += arrivals - 1
		most = max(most, arrivals)
	}
	return n, most
}

// requireSameEnds checks that both ends have the same samples, with the same said of each.
func requireSameEnds(t *testing.T, sent, got *fleetEnd) {
	t.Helper()
	require.Equal(t, sent.tenants(), got.tenants(), "samples of each tenant")
	require.Len(t, got.samples, len(sent.samples), "samples")
	for s, said := range sent.samples {
		require.Equal(t, said, got.samples[s], "%+v", s)
	}
}

func tenantSums(sums map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, sums[name]))
	}
	return strings.Join(parts, ", ")
}
