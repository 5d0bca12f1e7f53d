//go:build linux && (amd64 || arm64)

package pipeline

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
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

// While the next consumer refuses one of several users, or one request of several, profiles do not
// recover, whatever it accepts before or after. They do when all of a whole batch is accepted.
func TestConcernsOfPart(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"users":    func(o *Options) { o.Batches.PerUser = true },
		"requests": func(o *Options) { o.Batches.MaxRequestBytes = 4 << 10 },
	} {
		for _, refused := range []uint32{10, 20} {
			t.Run(name, func(t *testing.T) {
				var told []string
				o, out := testOptions(func(o *Options) {
					o.Report = func(of Concern, err error) {
						require.Equal(t, ConcernProfiles, of)
						if err == nil {
							told = append(told, "well")
							return
						}
						require.ErrorContains(t, err, "not this user")
						told = append(told, "refused")
					}
					change(o)
				})
				e := newCPUOutput(o, nil, procfs.FS{})
				offCPU := newStream(o, profile.KindOffCPU, &unhurried{}, &e.counts.users, e.memory)
				export := func(of *stream, early bool, users ...uint32) {
					b := e.newBatch(of)
					b.early = early
					for _, uid := range users {
						fill(b, uid, 100, fmt.Sprint("of-", uid))
					}
					b.endMono = monotonicNow()
					e.export(b)
				}
				accepted := 30 - refused
				out.refuseText = fmt.Sprint("of-", refused)
				for range 3 {
					export(e.cpu, false, 10, 20)
					export(e.cpu, true, accepted)
					export(offCPU, false, accepted)
				}
				require.NotEmpty(t, out.calls)
				require.Equal(t, []string{"refused", "refused", "refused"}, told)
				export(offCPU, false, 10, 20)
				out.refuseText = ""
				export(e.cpu, false, 10, 20)
				require.Len(t, told, 4, "what the other stream has is refused")
				export(offCPU, false, 10, 20)
				export(offCPU, false, 10, 20)
				require.Equal(t, []string{"refused", "refused", "refused", "refused", "well"}, told)
			})
		}
	}
}
