//go:build linux && (amd64 || arm64)

package pipeline

import (
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// A stream is the way of one kind of profile from BPF to the next consumer. At most
// BatchOptions.MaxPending wait in it; what comes beyond that is dropped and counted,
// because reading must not wait. Streams do not take each other's room.
type stream struct {
	kind    profile.Kind
	source  source
	users   *userSeries
	pool    pool
	pending chan *batch
	readNs  atomic.Uint64 // CLOCK_MONOTONIC: what was submitted before has been read

	// What user space counts; the rest is in BPF memory.
	emitted  atomic.Int64
	filtered [NumFilterReasons]atomic.Int64
	dropped  [NumDropReasons]atomic.Int64
	metered  atomic.Int64 // samples in the metrics
	byUser   userCounts
	shares   userDrops

	mu    sync.Mutex
	final *bpf.Counters // once sampling has ended
	last  bpf.Counters  // for when reading fails
}

// A source is where the samples of a stream come from.
type source interface {
	Start() error
	Stop() error
	Drain()
	Hurry()
	Close() error
	Counters() (bpf.Counters, error)
	UserDrops() (map[uint32]uint64, error)
	UnreadBytes() int
}

func newStream(o *Options, kind profile.Kind, from source, users *userSeries, memory *budget.Memory) *stream {
	s := &stream{
		kind:   kind,
		source: from,
		users:  users,
		pool: pool{memory: memory, options: profile.Options{
			Period:          o.period(),
			LabelPrefix:     o.Labels.Prefix,
			PrometheusNames: o.Labels.PrometheusNames,
			ServiceAdded:    o.Attributes.NamedServiceOnly,
			TraceAttributes: o.Attributes.Trace,
			ThreadID:        o.Attributes.ThreadID,
			ThreadName:      o.Attributes.ThreadName,
			CPUAttribute:    o.Attributes.CPU,
			MaxEntries:      o.Batches.MaxUserEntries,
			MaxFrames:       o.Batches.MaxUserFrames,
			ScopeName:       o.Scope.Name,
			ScopeVersion:    o.Scope.Version,
		}},
		pending: make(chan *batch, o.Batches.MaxPending),
	}
	if kind == profile.KindOffCPU {
		s.pool.options.OffCPU = &profile.OffCPU{Threshold: o.OffCPU.Threshold, Minimum: o.OffCPU.Minimum}
	}
	return s
}

func (s *stream) drop(why DropReason, samples int64) { s.dropped[why].Add(samples) }

func (s *stream) filter(why FilterReason, samples int64) { s.filtered[why].Add(samples) }

// dropEarly drops the samples of a batch of one user for which there is no room.
func (s *stream) dropEarly(uid uint32, samples int) { s.byUser.pendingFull(s.users.of(uid), samples) }

// countOverflow counts samples of a user that lack something because of BatchOptions.MaxUserEntries or MaxUserFrames.
func (s *stream) countOverflow(of *userBatch) {
	sets, stacks := of.builder.Overflown()
	s.byUser.overflow(s.users.of(of.uid), sets, stacks, of.builder.LackingFrames())
}

// freeze keeps the last values of the BPF counters; the source may be closed afterwards.
func (s *stream) freeze() {
	counters := s.bpfCounters()
	s.shares.update(s.users, counters.DroppedUserShare, s.source.UserDrops)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final = &counters
}

// bpfCounters returns the BPF counters, or the last known ones when they can't be read.
func (s *stream) bpfCounters() bpf.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final != nil {
		return *s.final
	}
	if counters, err := s.source.Counters(); err == nil {
		s.last = counters
	}
	return s.last
}

// snapshot reads the hits last: see [Snapshot]. It returns the BPF counters of that instant.
func (s *stream) snapshot() (StreamSnapshot, bpf.Counters) {
	to := StreamSnapshot{
		Enabled: true, Kind: s.kind,
		Metered: s.metered.Load(), Emitted: s.emitted.Load(), RingBytes: int64(s.source.UnreadBytes()),
	}
	for r := range s.filtered {
		to.Filtered[r] = s.filtered[r].Load()
	}
	for r := range s.dropped {
		to.Dropped[r] = s.dropped[r].Load()
	}
	to.UserDropped[UserDropPendingFull] = loaded(&s.byUser.dropped)

	c := s.bpfCounters()
	to.UserDropped[UserDropShare] = s.shares.update(s.users, c.DroppedUserShare, s.source.UserDrops)
	for reason, n := range [NumFilterReasons]uint64{
		FilterIdle: c.FilteredIdle, FilterTarget: c.FilteredTarget, FilterKernel: c.FilteredKernel,
		FilterOwn: c.FilteredOwn, FilterNotDrawn: c.FilteredNotDrawn,
	} {
		to.Filtered[reason] += int64(n)
	}
	for reason, n := range [NumDropReasons]uint64{
		DropRingFull: c.DroppedRingFull, DropUserShare: c.DroppedUserShare, DropInternal: c.DroppedInternal,
		DropTableFull: c.DroppedTableFull,
	} {
		to.Dropped[reason] += int64(n)
	}
	to.Hits = int64(c.Hits)
	return to, c
}

// fields for the log.
func (s *StreamSnapshot) fields() []zap.Field {
	fields := []zap.Field{zap.Int64("hits", s.Hits), zap.Int64("emitted", s.Emitted)}
	for reason, n := range s.Filtered[:FilterReasons(s.Kind)] {
		fields = append(fields, zap.Int64("filtered_"+FilterReason(reason).String(), n))
	}
	for reason, n := range s.Dropped[:DropReasons(s.Kind)] {
		fields = append(fields, zap.Int64("dropped_"+DropReason(reason).String(), n))
	}
	return append(fields, zap.Int64("pending", s.Pending()))
}
