//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// Each part of a pipeline reports its own concern, when it goes wrong and when it recovers.
func TestConcerns(t *testing.T) {
	wrong := map[Concern]bool{}
	report := func(of Concern, err error) { wrong[of] = err != nil }
	e, out, m := meteredOutput(true, func(o *Options) { o.Report = report })
	var cpus error
	follow := &follower{log: zap.NewNop(), report: report, update: func() (bool, error) { return false, cpus }}
	var r repairs
	step := func() {
		b := e.newBatch(e.cpu)
		fill(b, 10, 1, "tenant")
		b.endMono = monotonicNow()
		e.export(b)
		e.metering.collect()
		follow.followCPUs(&r)
	}
	out.refuse, m.refuse, cpus = -1, true, errors.New("one has no room")
	step()
	require.Equal(t, map[Concern]bool{ConcernProfiles: true, ConcernMetrics: true, ConcernCPUs: true}, wrong)
	m.refuse = false
	step()
	require.Equal(t, map[Concern]bool{ConcernProfiles: true, ConcernMetrics: false, ConcernCPUs: true}, wrong)
	cpus = nil
	step()
	require.Equal(t, map[Concern]bool{ConcernProfiles: true, ConcernMetrics: false, ConcernCPUs: false}, wrong)
	out.refuse = -2
	step()
	require.Equal(t, map[Concern]bool{ConcernProfiles: false, ConcernMetrics: false, ConcernCPUs: false}, wrong)
}
