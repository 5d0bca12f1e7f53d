//go:build amd64 || arm64

package customlabelsreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/procfs"
)

// samplingPipeline is the flow bpf → process → labels → profile → consumer; of metrics
// the last steps are cputime → consumer.
//
// Its goroutines: one reads samples, decodes labels and aggregates (drain); one
// builds and hands over batches (exporter); one hands over metrics, where they are wanted (metering); one follows threads off the CPU, where
// that is wanted (offCPUDrain); two pass on what happens to
// processes, and one makes up for what they missed, and follows CPU hotplug; the process
// table has its own. Reading
// never waits for the next consumer.
type samplingPipeline struct {
	cfg       *Config
	log       *zap.Logger
	report    func(error)
	sampler   *bpf.Sampler
	publisher *publisher
	table     *process.Table
	registry  *labels.Registry
	handle    func(process.Event) // of the table
	drain     *drain
	offCPU    *offCPUDrain // nil: not wanted
	exporter  *exporter
	counts    *counts
	budgets   budgets
	telemetry *telemetry

	stopTable context.CancelFunc
	stopped   chan struct{} // closed when sampling has ended
	drained   sync.WaitGroup
	tabled    sync.WaitGroup // the process table, which publishes to the sampler
	rest      sync.WaitGroup // everything that ends after the sampler is closed
}

// maxCommandLineBytes of process.command_line, where it is asked for.
const maxCommandLineBytes = 4096

func commandLineBytes(cfg *Config) int {
	if cfg.CommandLine {
		return maxCommandLineBytes
	}
	return 0
}

// sayDegradations warns of what there will not be for want of a capability.
func sayDegradations(log *zap.Logger) {
	sentences, err := bpf.Degradations()
	if err != nil {
		log.Warn("the own capabilities could not be read", zap.Error(err))
	}
	for _, sentence := range sentences {
		log.Warn(sentence)
	}
}

// newPipeline wires sampler, process table, label decoder and profile builder.
func newPipeline(cfg *Config, set receiver.Settings, next consumers, report func(error)) (pipeline, error) {
	return newPipelineWith(cfg, set, next, report, 0)
}

// newPipelineWith is newPipeline with a ring buffer for events of so many bytes; 0: the default.
func newPipelineWith(
	cfg *Config, set receiver.Settings, next consumers, report func(error), eventRingBytes int,
) (pipeline, error) {
	if next.profiles == nil {
		cfg = cfg.withoutProfiles()
	}
	selection, err := newSelection(&cfg.Targets)
	if err != nil {
		return nil, err
	}
	registry, err := newRegistry(&cfg.Labels, set.Logger)
	if err != nil {
		return nil, err
	}
	cpus, err := bpf.PossibleCPUs()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	ring := cfg.ringBytes(cpus)
	sampler, err := bpf.New(bpf.Config{
		EventRingBytes:         eventRingBytes,
		SelectTargets:          selection != nil,
		JudgeForked:            selection != nil && selection.ByPID,
		SamplesPerSecond:       cfg.SamplesPerSecond,
		RingBufferBytes:        ring,
		UserShare:              cfg.RingBufferUserShare,
		MaxMapBytes:            cfg.MaxBPFMapBytes,
		MaxTableBytes:          tableBytes(cfg),
		OffCPURingBytes:        offCPURingBytes(cfg),
		SkipLabels:             !cfg.Labels.Enabled,
		FramePointersOnly:      cfg.Unwind == UnwindFramePointers,
		MaxLabels:              cfg.Labels.MaxLabels,
		MaxKeyBytes:            cfg.Labels.MaxKeyBytes,
		MaxValueBytes:          cfg.Labels.MaxValueBytes,
		VerifierLogLevel:       cfg.BPFVerifierLogLevel,
		SkipKernelVersionCheck: cfg.NoKernelVersionCheck,
	})
	if err != nil {
		return nil, startError(cfg, ring, err)
	}
	sayDegradations(set.Logger)
	p := &samplingPipeline{
		cfg:      cfg,
		log:      set.Logger,
		report:   report,
		sampler:  sampler,
		registry: registry,
		counts:   &counts{},
		budgets:  newBudgets(cfg),
		stopped:  make(chan struct{}),
	}
	p.publisher = newPublisher(sampler)
	fs := procfs.FS{Root: "/proc"}
	var rows process.Unwinder
	if cfg.Unwind == UnwindRows {
		rows = unwinder{sampler}
	}
	p.table = process.NewTable(process.Options{
		Unwinder:         rows,
		Memory:           p.budgets.memory,
		CPU:              p.budgets.cpu,
		MaxRowBytes:      cfg.MaxUnwindBytes,
		FS:               fs,
		Selection:        selection,
		Publisher:        p.publisher,
		Programs:         p.publisher,
		NameFile:         fileNames(sampler),
		Logger:           set.Logger,
		CommandLineBytes: commandLineBytes(cfg),
		Environment:      cfg.ResourceFromEnvironment,
		StrictFileNames:  cfg.Labels.StrictFileNames,
	})
	p.handle = p.table.HandleEvent
	p.exporter = newExporter(cfg, set, next, report, p.counts, p.table, fs, p.budgets)
	p.drain = &drain{newAggregator(cfg, p.table, registry, p.exporter, p.exporter.cpu, p.counts), sampler}
	if cfg.OffCPUThreshold > 0 {
		if p.offCPU, err = newOffCPUDrain(cfg, sampler, newAggregator(cfg, p.table, registry, p.exporter, p.exporter.offCPU, p.counts), fs); err != nil {
			return nil, errors.Join(fmt.Errorf("start off-CPU sampler: %w", err), sampler.Close())
		}
	}
	if p.telemetry, err = newTelemetry(set, cfg, p.snapshot); err != nil {
		return nil, errors.Join(err, p.closeSamplers())
	}
	return p, nil
}

// start implements pipeline. Events are followed before the scan and the scan
// comes before the first sample, so that no process is missed between; what is not
// wanted of the processes that are there is known by then.
func (p *samplingPipeline) start(context.Context) error {
	if err := p.sampler.Follow(); err != nil {
		return p.abandon(fmt.Errorf("follow processes: %w", err))
	}
	if err := p.sampler.ContextEvents(); err != nil {
		p.log.Info("The kernel does not tell when processes publish a process context; they are searched for it alone.", zap.Error(err))
	}
	if err := p.sampler.Scan(func(ev bpf.ProcessEvent) { p.table.HandleEvent(processEvent(ev)) }); err != nil {
		return p.abandon(fmt.Errorf("scan processes: %w", err))
	}
	p.table.Judge()
	if err := p.sampler.Start(); err != nil {
		return p.abandon(fmt.Errorf("start sampling: %w", err))
	}
	if p.offCPU != nil {
		if err := p.offCPU.source.Start(); err != nil {
			return p.abandon(fmt.Errorf("start off-CPU sampling: %w", err))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stopTable = cancel
	p.exporter.start()
	p.drained.Go(p.drain.run)
	if p.offCPU != nil {
		p.drained.Go(p.offCPU.run)
	}
	p.rest.Go(p.followProcesses)
	p.rest.Go(p.followMappings)
	p.rest.Go(p.repair)
	p.tabled.Go(func() { p.table.Run(ctx) })
	return nil
}

func (p *samplingPipeline) abandon(err error) error {
	return errors.Join(err, p.telemetry.close(), p.closeSamplers())
}

func (p *samplingPipeline) closeSamplers() error {
	if p.offCPU == nil {
		return p.sampler.Close()
	}
	return errors.Join(p.offCPU.source.Close(), p.sampler.Close())
}

// shutdown implements pipeline.
func (p *samplingPipeline) shutdown(ctx context.Context) error {
	close(p.stopped)
	errs := []error{p.sampler.Stop(), p.sampler.Drain()}
	if p.offCPU != nil {
		errs = append(errs, p.offCPU.source.Stop(), p.offCPU.source.Drain())
	}
	p.drained.Wait() // what is in the ring buffer now; no consumer is waited for
	p.exporter.finish(ctx)
	p.counts.freeze(p.sampler)
	if p.offCPU != nil {
		p.offCPU.freeze()
	}
	p.logAccount()
	p.stopTable()
	p.tabled.Wait()
	errs = append(errs, p.telemetry.close(), p.closeSamplers())
	p.registry.Reset()
	p.rest.Wait()
	return errors.Join(errs...)
}

// logAccount says what became of every hit; the metrics end before they could.
func (p *samplingPipeline) logAccount() {
	var s snapshot
	p.snapshot(&s)
	fields := []zap.Field{
		zap.Int64("hits", s.hits),
		zap.Int64("emitted", s.emitted),
	}
	for reason, n := range s.filtered {
		fields = append(fields, zap.Int64("filtered_"+filterReason(reason).String(), n))
	}
	for reason, n := range s.dropped {
		fields = append(fields, zap.Int64("dropped_"+dropReason(reason).String(), n))
	}
	if s.metering.enabled {
		fields = append(fields, zap.Int64("metric_samples", s.metering.samples))
	}
	p.log.Info("sampling has ended", append(fields, zap.Int64("pending", s.pending()))...)
	if p.offCPU != nil {
		p.log.Info("off-CPU sampling has ended", s.offCPU.fields()...)
	}
}

func (p *samplingPipeline) followProcesses() {
	for {
		var ev bpf.ProcessEvent
		err := p.sampler.ReadEvent(&ev)
		if errors.Is(err, bpf.ErrClosed) {
			return
		}
		if err != nil {
			p.degraded("process events have ended: new processes will be seen late", err)
			return
		}
		p.handle(processEvent(ev))
	}
}

func (p *samplingPipeline) followMappings() {
	err := p.sampler.ReadMappingEvents(func(ev bpf.MappingEvent) {
		kind := process.Mapping
		if ev.Lost {
			kind = process.MappingsLost
		}
		p.table.HandleEvent(process.Event{Kind: kind, PID: int(ev.PID)})
	})
	if !errors.Is(err, bpf.ErrClosed) {
		p.degraded("mapping events have ended: libraries loaded later will be seen late", err)
	}
}

func (p *samplingPipeline) degraded(what string, err error) {
	p.log.Error(what, zap.Error(err))
	p.report(fmt.Errorf("%s: %w", what, err))
}
