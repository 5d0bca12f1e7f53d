//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync/atomic"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/cputime"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// A lane is the way of one kind of profile to the next consumer. At most
// max_pending_batches wait in it; what comes beyond that is dropped and counted,
// because reading must not wait. Lanes do not take each other's room.
type lane struct {
	kind    cputime.Kind
	parts   partPool
	pending chan *batch

	emitted, pendingFull, refused, noMemory *atomic.Int64
	tooLarge                                *atomic.Int64
	metered                                 *atomic.Int64
	filtered                                *[NumFilterReasons]atomic.Int64
	users                                   *userCounts
}

func newLane(o *Options, kind cputime.Kind, offCPU *profile.OffCPU, memory *budget.Memory) *lane {
	return &lane{
		kind: kind,
		parts: partPool{memory: memory, options: profile.Options{
			Period:           o.period(),
			LabelPrefix:      o.Labels.Prefix,
			TraceAttributes:  o.Attributes.Trace,
			ThreadAttributes: o.Attributes.Thread,
			CPUAttribute:     o.Attributes.CPU,
			MaxEntries:       o.Batches.MaxUserEntries,
			ScopeName:        o.Scope.Name,
			ScopeVersion:     o.Scope.Version,
			OffCPU:           offCPU,
		}},
		pending: make(chan *batch, o.Batches.MaxPending),
	}
}

func newCPULane(o *Options, c *counts, memory *budget.Memory) *lane {
	l := newLane(o, cputime.OnCPU, nil, memory)
	l.emitted, l.pendingFull, l.refused = &c.emitted, &c.dropped[DropPendingFull], &c.dropped[DropRefused]
	l.noMemory, l.filtered, l.users = &c.dropped[DropNoMemory], &c.filtered, &c.byUser
	l.metered, l.tooLarge = &c.metered, &c.dropped[DropTooLarge]
	return l
}

func newOffCPULane(o *Options, c *counts, memory *budget.Memory) *lane {
	off := &c.offCPU
	l := newLane(o, cputime.OffCPU, &profile.OffCPU{Threshold: o.OffCPU.Threshold, Minimum: o.OffCPU.Minimum}, memory)
	l.emitted, l.pendingFull, l.refused = &off.emitted, &off.dropped[OffCPUPendingFull], &off.dropped[OffCPURefused]
	l.noMemory, l.filtered, l.users = &off.dropped[OffCPUNoMemory], &off.filtered, &off.byUser
	l.metered, l.tooLarge = &off.metered, &off.dropped[OffCPUTooLarge]
	return l
}
