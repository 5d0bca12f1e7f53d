//go:build linux && (amd64 || arm64)

package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
	"github.com/customlabels/otelcol-customlabels/internal/profile"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// Pipeline is the flow bpf → process → labels → profile → consumer; of metrics
// the last steps are cputime → consumer. It is used once.
//
// Its goroutines: of each stream one reads samples, decodes labels and aggregates (drain); one
// builds and hands over batches (output); one hands over metrics, where they are wanted
// (metering); two pass on what happens to processes, and one makes up for what they missed,
// and follows CPU hotplug (follower); the process table has its own, and so has each call of a
// next consumer. Reading never waits for the next consumer.
type Pipeline struct {
	options  Options
	sampler  *bpf.Sampler
	table    *process.Table
	registry *labels.Registry
	follower *follower
	notices  *notices
	streams  []*stream // those that are wanted, that of the sampler first
	drains   []*drain  // one for each
	output   *output
	counts   *counts
	budgets  budgets

	descriptors descriptors

	stopTable context.CancelFunc // nil: not started
	drained   sync.WaitGroup
	tabled    sync.WaitGroup // the process table, which publishes to the sampler; in the end also what names are read from

	mu   sync.Mutex
	last *Snapshot // once the samplers are closed
}

// Supported tells why there can be no pipeline on this system.
func Supported() error { return nil }

// maxCommandLineBytes of process.command_args, where it is asked for.
const maxCommandLineBytes = 4096

func commandLineBytes(o *Options) int {
	if o.Attributes.CommandArgs {
		return maxCommandLineBytes
	}
	return 0
}

// sayDegradations tells what there will not be for want of a capability, of the host's processes, or of
// something in the kernel.
func sayDegradations(log *zap.Logger, sampler *bpf.Sampler) {
	sentences, err := bpf.Degradations()
	if err != nil {
		log.Warn("the own capabilities or PID namespace could not be read", zap.Error(err))
	}
	for _, sentence := range sentences {
		log.Warn(sentence)
	}
	for _, sentence := range sampler.KernelLacks() {
		log.Info(sentence)
	}
}

var errNoConsumer = errors.New("nobody consumes profiles or metrics")

// New loads a pipeline, which runs from Start to Shutdown. Whether it is started or not,
// Shutdown releases it. An error names what this host lacks.
func New(o Options) (*Pipeline, error) { return newPipeline(o, 0) }

// newPipeline is New with a ring buffer for events of so many bytes; 0: the default. It wires
// sampler, process table, label decoder and profile builder.
func newPipeline(o Options, eventRingBytes int) (*Pipeline, error) {
	o.complete()
	if o.Next == (Consumers{}) {
		return nil, errNoConsumer
	}
	if o.Next.Profiles == nil {
		o = o.withoutProfiles()
	}
	fs := procfs.FS{Root: "/proc"}
	if err := checkClock(fs); err != nil {
		return nil, err
	}
	matches := newSelectorMatches(&o.Targets.Selection)
	selection, err := newSelection(&o.Targets, matches)
	if err != nil {
		return nil, err
	}
	registry, err := newRegistry(&o.Labels, o.Logger)
	if err != nil {
		return nil, err
	}
	on, err := bpf.HostCPUs()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	o.fit(on)
	sampler, err := newSampler(&o, on, selection, eventRingBytes)
	if err != nil {
		return nil, err
	}
	sayDegradations(o.Logger, sampler)
	warnOfCgroups(o.Logger, matches, fs)
	p := &Pipeline{
		options:  o,
		sampler:  sampler,
		registry: registry,
		counts:   &counts{},
		budgets:  newBudgets(&o.Limits),
	}
	if p.descriptors, err = newDescriptors(on); err != nil {
		return nil, errors.Join(err, sampler.Close())
	}
	p.descriptors.warn(&o)
	alarm, err := wakeup.NewAlarm()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read processes in time: %w", err), sampler.Close())
	}
	p.table = process.NewTable(p.tableOptions(selection, fs, alarm))
	p.output = newOutput(&p.options, p.counts, p.table, fs, p.budgets)
	p.open(profile.KindCPU, sampler, &cpuReader{sampler: sampler})
	p.notices = newNotices(&p.options, matches)
	if p.follower, err = newFollower(&o, sampler, p.table, p.streams[0], alarm); err != nil {
		return nil, errors.Join(err, alarm.Close(), sampler.Close())
	}
	if o.OffCPU.Threshold > 0 {
		source, err := openOffCPU(&o, sampler)
		if err != nil {
			p.follower.close()
			return nil, errors.Join(fmt.Errorf("start off-CPU sampler: %w", err), sampler.Close())
		}
		p.open(profile.KindOffCPU, source, newOffCPUReader(&o, source, fs))
	}
	return p, nil
}

// samplesRead is until when, CLOCK_MONOTONIC, what was submitted has been read of all streams.
func (p *Pipeline) samplesRead() int64 {
	until := uint64(math.MaxInt64)
	for _, s := range p.streams {
		until = min(until, s.readNs.Load())
	}
	return int64(until)
}

// open makes a stream from a source to the output.
func (p *Pipeline) open(kind profile.Kind, from source, by reader) {
	s := newStream(&p.options, kind, from, &p.counts.users, p.budgets.memory)
	p.streams = append(p.streams, s)
	p.output.pending[kind] = s.pending
	broken := func(err error) {
		p.follower.degraded(ConcernSamples, fmt.Sprintf("samples (%v) have ended: none come until the receiver is started again", kind), err)
	}
	p.drains = append(p.drains, &drain{newAggregator(&p.options, p.registry, p.output, s), by, broken})
}

func newSampler(o *Options, on bpf.CPUs, selection *process.Selection, eventRingBytes int) (*bpf.Sampler, error) {
	config := samplerConfig(o, on, selection, eventRingBytes)
	sampler, err := bpf.New(config)
	if errors.Is(err, bpf.ErrMapBytes) {
		// How much some maps take depends on the number of CPUs.
		return nil, fmt.Errorf("start sampler: max_bpf_map_bytes %d is too low on this host, with %d for unwind rows, %d for the ring buffer and %d for that of off-CPU profiles: raise it: %w",
			o.Limits.BPFMapBytes, config.MaxTableBytes, config.RingBufferBytes, config.OffCPURingBytes, err)
	}
	if err != nil {
		return nil, fmt.Errorf("start sampler: %w", err)
	}
	return sampler, nil
}

func samplerConfig(o *Options, on bpf.CPUs, selection *process.Selection, eventRingBytes int) bpf.Config {
	maps := o.mapBytes()
	return bpf.Config{
		EventRingBytes:    eventRingBytes,
		SelectTargets:     selection != nil,
		JudgeForked:       selection != nil && selection.ByPID,
		SamplesPerSecond:  o.SamplesPerSecond,
		MaxReadDelay:      o.ReportInterval / 2,
		RingBufferBytes:   o.ringBytes(on),
		UserShare:         o.Ring.UserShare,
		MaxMapBytes:       o.Limits.BPFMapBytes,
		MaxTableBytes:     maps.unwind,
		OffCPURingBytes:   maps.offCPURing,
		SkipLabels:        o.Labels.Skip,
		SkipStacks:        o.Unwind.Skip,
		FramePointersOnly: o.Unwind.FramePointersOnly,
		WholeVerifierLog:  o.Kernel.WholeVerifierLog,
	}
}

func (p *Pipeline) tableOptions(selection *process.Selection, fs procfs.FS, alarm *wakeup.Alarm) process.Options {
	o := &p.options
	var rows process.Unwinder
	if !o.Unwind.FramePointersOnly {
		rows = p.sampler
	}
	options := process.Options{
		Unwinder:         rows,
		Memory:           p.budgets.memory,
		CPU:              p.budgets.cpu,
		Alarm:            alarm,
		SamplesRead:      p.samplesRead,
		SamplePeriod:     o.period(),
		MaxRowBytes:      o.Unwind.MaxBytes,
		MaxRowTables:     cmp.Or(p.descriptors.tables, -1), // 0 would be the default
		MaxDescriptors:   cmp.Or(p.descriptors.files, -1),
		FS:               fs,
		Selection:        selection,
		Publisher:        p.sampler,
		Programs:         p.sampler,
		Logger:           o.Logger,
		CommandLineBytes: commandLineBytes(o),
		Environment:      o.Attributes.Environment,
		Runtimes:         o.runtimes(),
		OffCPU:           o.OffCPU.Threshold > 0,
	}
	if p.sampler.CanNameFiles() {
		options.NameFile = p.sampler.NameFile
	}
	return options
}

// Start attaches everything and returns quickly; what goes on afterwards does so on
// goroutines with a context of their own. After an error nothing is left behind.
//
// Events are followed before the scan and the scan comes before the first sample, so that no
// process is missed between; what is not wanted of the processes that are there is known by
// then.
func (p *Pipeline) Start(context.Context) error {
	if err := p.sampler.Follow(); err != nil {
		return p.abandon(fmt.Errorf("follow processes: %w", err))
	}
	noEvents := p.sampler.ContextEvents()
	if noEvents != nil {
		p.options.Logger.Info("Process contexts are found by polling, somewhat later than they are published: this kernel lets no BPF program trace the function by which they are named. All else works.", zap.Error(noEvents))
	}
	if err := p.follower.scan(); err != nil {
		return p.abandon(fmt.Errorf("scan processes: %w", err))
	}
	p.table.Judge(firstVerdicts)
	for _, stream := range p.streams {
		if err := stream.source.Start(); err != nil {
			return p.abandon(fmt.Errorf("start sampling (%v): %w", stream.kind, err))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stopTable = cancel
	p.output.start()
	for _, drain := range p.drains {
		p.drained.Go(drain.run)
	}
	p.follower.start()
	p.tabled.Go(func() { p.table.Run(ctx) })
	p.follower.done.Go(func() { p.notices.run(p.follower.stopped, p.Snapshot) })
	p.notices.started(&p.options, p.sampler.CPUs(), noEvents == nil)
	p.follower.done.Go(func() { giveBack(p.follower.stopped, debug.FreeOSMemory) })
	return nil
}

// firstVerdicts is how long the start waits for first verdicts on the processes that run.
const firstVerdicts = 10 * time.Second

// firstLooks is about how long the first looks at what runs take.
const firstLooks = 3 * time.Second

// giveBack gives memory back to the system. Loading has taken tens of MiB, above all to decode the kernel's
// types, and so have the first looks at what runs. Go would keep most of it for minutes: the
// heap is small from then on.
func giveBack(stopped <-chan struct{}, free func()) {
	select {
	case <-stopped:
	case <-time.After(firstLooks):
		free()
	}
}

func (p *Pipeline) abandon(err error) error { return errors.Join(err, p.release()) }

// release closes the samplers, if that has not been done; snapshots stay what they are then.
func (p *Pipeline) release() error {
	last := p.Snapshot()
	p.mu.Lock()
	released := p.last != nil
	p.last = &last
	p.mu.Unlock()
	if released {
		return nil
	}
	p.follower.close()
	var errs []error
	for _, stream := range slices.Backward(p.streams) { // the others use what the sampler has
		errs = append(errs, stream.source.Close())
	}
	return errors.Join(errs...)
}

// Shutdown stops sampling, hands over what was sampled, and releases everything. When ctx
// ends first, what was not handed over yet is dropped and counted, but everything is still
// released. A consumer that does not return though its context has ended is left behind, with
// what it was given and nothing else of the pipeline. It does nothing the second time, and must
// not be called while Start runs.
func (p *Pipeline) Shutdown(ctx context.Context) error {
	if p.stopTable == nil {
		return p.release()
	}
	p.follower.stop()
	var errs []error
	for _, stream := range p.streams {
		errs = append(errs, stream.source.Stop())
		stream.source.Drain()
	}
	p.drained.Wait() // what is in the ring buffer now; no consumer is waited for
	p.output.finish(ctx)
	for _, stream := range p.streams {
		stream.freeze()
	}
	p.logAccount()
	p.stopReading()
	errs = append(errs, p.release())
	p.registry.Reset()
	p.follower.done.Wait()
	return errors.Join(errs...)
}

// stopReading ends what reads processes and files. What keeps one of them waiting, a file server for instance,
// most often does so with the other: they are waited for together.
func (p *Pipeline) stopReading() {
	p.tabled.Go(p.output.symbols.close)
	p.stopTable()
	p.stopTable = nil
	p.tabled.Wait()
}

// logAccount says what became of every hit; the metrics end before they could.
func (p *Pipeline) logAccount() {
	s := p.Snapshot()
	for _, stream := range p.streams {
		of := &s.Streams[stream.kind]
		fields := append([]zap.Field{zap.String("profile", stream.kind.String())}, of.fields()...)
		if s.Metering.Enabled {
			fields = append(fields, zap.Int64("metric_samples", of.Metered))
		}
		p.options.Logger.Info("Sampling has ended.", fields...)
	}
}
