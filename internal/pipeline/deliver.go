//go:build linux && (amd64 || arm64)

package pipeline

import (
	"context"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/budget"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
)

// deliverer builds profiles from batches and hands them to the next consumer. It belongs to
// the output's goroutine.
type deliverer struct {
	log      *zap.Logger
	report   func(Concern, error)
	next     xconsumer.Profiles
	calls    calls // of next
	counts   *counts
	resolver *resolver
	memory   *budget.Memory
	byUser   bool // each user has batches of its own
	request  int  // bytes at most
	refusals refusals
	// saidTooLarge: the log has a line about an entry that was too large.
	saidTooLarge bool
	serial       uint64 // of profiles: batches of users may begin at one time

	// Of one batch.
	refusal  error // nil: none
	accepted bool  // the next consumer has taken some of its requests

	refused [profile.NumKinds]bool // the next consumer refused some of the last batch of that kind
}

func newDeliverer(o *Options, c *counts, r *resolver, memory *budget.Memory) *deliverer {
	return &deliverer{
		log: o.Logger, report: o.Report, next: o.Next.Profiles, calls: newCalls(o.Logger, "profiles"), counts: c, resolver: r, memory: memory,
		byUser: o.Batches.PerUser, request: o.Batches.MaxRequestBytes, refusals: newRefusals(o.Logger, "profiles"),
	}
}

// deliverAll hands a batch to the next consumer: whole, or of each user apart. k is what its
// profiles say of its processes.
func (d *deliverer) deliverAll(ctx context.Context, b *batch, k known) {
	d.resolver.begin(ctx, b.users, k)
	defer d.resolver.end()
	defer d.tell(b)
	if !d.byUser {
		d.deliver(ctx, b, b.byUID())
		return
	}
	for _, p := range b.byUID() {
		d.resolver.only(p.uid)
		d.deliver(userContext(ctx, p.uid), b, []*userBatch{p})
	}
}

// deliver hands what a batch has of some users to the next consumer: as profiles of one dictionary, or of
// several where they would be too large for a request.
func (d *deliverer) deliver(ctx context.Context, b *batch, users []*userBatch) {
	builders, starts := make([]*profile.Builder, len(users)), make([]uint64, len(users))
	output, samples := 0, 0
	for i, p := range users {
		builders[i], starts[i] = p.builder, p.startMono+b.clockOffset
		output += p.builder.OutputBytes()
		samples += p.builder.Samples()
	}
	hold := func(bytes int) { d.memory.Add(budget.OfOutput, bytes) }
	hold(output)
	left := output // of what was not handed over yet
	defer func() { hold(-left) }()
	for profiles, stats := range profile.Requests(builders, d.resolver, starts, b.endMono+b.clockOffset, d.request, &d.serial, hold) {
		d.counts.countBuild(stats)
		if stats.TooLarge > 0 {
			d.dropTooLarge(b.stream, int64(stats.TooLarge))
		}
		if stats.Samples > 0 {
			d.consume(ctx, b.stream, profiles, int64(stats.Samples))
			gone := output * int(stats.Samples) / samples
			hold(-gone)
			left -= gone
		}
	}
	for _, p := range users {
		b.stream.countOverflow(p)
	}
	for reason, n := range d.resolver.takeLeftOut() {
		b.stream.filter(FilterReason(reason), n)
	}
}

// dropTooLarge gives up n samples that no request has room for.
func (d *deliverer) dropTooLarge(s *stream, n int64) {
	s.drop(DropTooLarge, n)
	if !d.saidTooLarge {
		d.saidTooLarge = true
		d.log.Warn("What was sampled of a process at one place, with its resource and labels, is too large for max_request_bytes, or a user has too much of what is nearly so; further such samples are only counted.",
			zap.Int64("samples", n), zap.Int("max_request_bytes", d.request))
	}
}

// consume hands profiles of n samples to the next consumer.
func (d *deliverer) consume(ctx context.Context, s *stream, profiles pprofile.Profiles, n int64) {
	err := d.calls.call(ctx, func() error { return d.next.ConsumeProfiles(ctx, profiles) })
	if err != nil {
		s.drop(DropRefused, n)
		d.refusals.add(err)
		d.refusal = err
		return
	}
	s.emitted.Add(n)
	d.accepted = true
}

// tell reports what became of a whole batch: a consumer may refuse one user, or one request, and accept
// the others each time. An early batch says nothing about other users, nor does one stream about the other.
func (d *deliverer) tell(b *batch) {
	refusal, accepted := d.refusal, d.accepted
	d.refusal, d.accepted = nil, false
	refused := &d.refused[b.stream.kind]
	switch {
	case refusal != nil:
		*refused = true
		d.report(ConcernProfiles, fmt.Errorf("the next consumer refuses profiles: %w", refusal))
	case accepted && *refused && !b.early:
		*refused = false
		if d.refused == [profile.NumKinds]bool{} {
			d.report(ConcernProfiles, nil)
		}
	}
}

// metadataUser is the key under which the context of a batch of one user has its uid, as
// if it had come with a request: exporters and extensions can pass it on.
const metadataUser = "custom_labels.user"

func userContext(ctx context.Context, uid uint32) context.Context {
	return client.NewContext(ctx, client.Info{
		Metadata: client.NewMetadata(map[string][]string{metadataUser: {strconv.FormatUint(uint64(uid), 10)}}),
	})
}
