//go:build linux && (amd64 || arm64)

package pipeline

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// known is what is known of the processes of a batch at one time: for its metrics and its
// profiles it is the same. Each of them has a copy, and counts what it leaves out.
type known struct {
	infos        map[uint64]*process.Info // not changed any more
	targetFilter targetFilter
	// namedOnly leaves out the service of those that name none.
	namedOnly bool
	leftOut   [NumFilterReasons]int64 // samples
}

var _ cputime.Resolver = (*known)(nil)

func newKnown(b *batch, filter targetFilter, namedOnly bool) known {
	k := known{infos: map[uint64]*process.Info{}, targetFilter: filter, namedOnly: namedOnly}
	for _, p := range b.users {
		for handle, proc := range p.processes {
			if k.infos[handle] == nil {
				k.infos[handle] = proc.Info()
			}
		}
	}
	return k
}

// Wanted implements cputime.Resolver and profile.Resolver.
func (k *known) Wanted(handle uint64, samples int) bool {
	info := k.infos[handle]
	if info == nil {
		return true
	}
	why, omitted := k.targetFilter.of(info)
	if omitted {
		k.leftOut[why] += int64(samples)
	}
	return !omitted
}

// Resource implements cputime.Resolver and profile.Resolver.
func (k *known) Resource(handle uint64, attrs pcommon.Map) {
	info := k.infos[handle]
	if info == nil {
		info = &process.Info{}
	}
	putProcess(attrs, info)
	if !k.namedOnly {
		putUnknownService(attrs, info)
	}
	profile.CleanMap(attrs)
}

// takeLeftOut returns the samples of processes that were not wanted, since the last call.
func (k *known) takeLeftOut() [NumFilterReasons]int64 {
	n := k.leftOut
	k.leftOut = [NumFilterReasons]int64{}
	return n
}
