//go:build linux && (amd64 || arm64)

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// Errors of the read functions.
var (
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("sampler closed")
	// ErrIdle says that no record is left at the moment.
	ErrIdle = errors.New("no record at the moment")
	// ErrDrained says that the records present at the call of Drain have been read.
	ErrDrained = errors.New("drained")
)

// A Sampler owns the programs, their maps and what they are attached to.
//
// Read and ReadEvents are for one goroutine each; the other methods may be
// called from anywhere.
type Sampler struct {
	config   Config
	knobs    map[string]any // what both objects have
	kernel   kernel
	objs     objects
	samples  *ring
	events   *ring
	eventRaw []byte
	cpus     CPUs

	// tablesMu is held while tables come and go, for as long as the kernel waits for its programs. Who holds another lock
	// does not wait for it.
	tablesMu sync.Mutex
	tables   tables
	// slotsMu is held for moments. It guards tables.slots and tables.bytes, which change under both locks, and fixedBytes.
	slotsMu    sync.Mutex
	fixedBytes int // of maps that do not grow

	namedMu sync.Mutex // what is asked of NameFile

	processesMu sync.Mutex
	processes   map[record.ProcessID]knownProcess
	listID      uint64 // of the last list of mappings

	mu          sync.Mutex
	types       *btf.Cache // of the kernel, for what is loaded before Start; then nil
	contextHook contextHook
	clocks      map[int]*clock // by CPU; nil before Start and after Stop
	online      onlineCPUs
	lifecycle   []link.Link // from Follow to Close
	sideband    *sideband
	closed      bool
}

// New loads the programs into the kernel. Nothing is sampled before Start. An
// error that wraps ErrUnsupported names what the host or the user lacks.
func New(config Config) (*Sampler, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	types := btf.NewCache()
	kernel, err := checkSupport(types)
	if err != nil {
		return nil, err
	}
	if config.older {
		kernel.older, kernel.mappingTree = true, false
	}
	kernel.preemptOff = kernel.preemptOff && !config.preemptible
	cpus, err := HostCPUs()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	s := &Sampler{
		config: config, kernel: kernel, types: types, cpus: cpus,
		processes: map[record.ProcessID]knownProcess{},
	}
	s.tables.slots, s.tables.files = map[record.TableID]loadedTable{}, map[record.FileKey][]fileRows{}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.events, err = newRing(s.objs.Events, 1, config.eventReadDelay(), 2*config.eventReadDelay()); err != nil {
		return nil, errors.Join(fmt.Errorf("map event ring buffer: %w", err), s.Close())
	}
	if s.sideband, err = newSideband(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sampler) load() error {
	spec, err := s.kernel.loadProfiler()
	if err != nil {
		return fmt.Errorf("read programs: %w", err)
	}
	namespace, err := pidNamespace()
	if err != nil {
		return err
	}
	c := &s.config
	s.knobs = map[string]any{
		profilerVarReadLabels:      flag(!c.SkipLabels),
		profilerVarReadStacks:      flag(!c.SkipStacks),
		profilerVarMaxKernelFrames: lowered(cmp.Or(c.maxKernelFrames, kernelFrames()), record.MaxKernelFrames),
		profilerVarUseRows:         flag(!c.FramePointersOnly),
		profilerVarSelectTargets:   flag(c.SelectTargets),
		profilerVarJudgeForked:     flag(c.JudgeForked),
		profilerVarPidNsInum:       namespace,
		profilerVarPageBytes:       uint32(os.Getpagesize()),
		profilerVarAddressMask:     cmp.Or(c.addressMask, addressMask(unix.Auxv())),
	}
	mark, err := s.setUserShare(spec, c.UserShare, c.RingBufferBytes, c.RingBufferBytes)
	err = errors.Join(err, setVariables(spec, s.knobs), setVariables(spec, map[string]any{
		profilerVarWatermarkBytes:       mark,
		profilerVarEventsWatermarkBytes: watermark(int(c.eventRingBytes())),
	}))
	if err != nil {
		return fmt.Errorf("set knobs: %w", err)
	}
	spec.Maps[profilerMapSamples].MaxEntries = uint32(c.RingBufferBytes)
	spec.Maps[profilerMapEvents].MaxEntries = c.eventRingBytes()
	spec.Maps[profilerMapScratches].MaxEntries = uint32(s.cpus.Room)
	if err := s.sizeMaps(spec); err != nil {
		return err
	}

	if err := s.loadObjects(spec, s.kernel.loaded(&s.objs), nil); err != nil {
		return err
	}
	s.fixedBytes = mapsBytes(spec, s.cpus.Possible, growing())
	if s.contextHook.err = s.loadContextHook(); s.contextHook.err == nil {
		contexts, err := contextsBytes(s.cpus.Possible)
		if err != nil {
			return err
		}
		s.fixedBytes += contexts
	}
	if s.samples, err = newRing(s.objs.Samples, int(mark), c.readDelay(), c.slowReadDelay()); err != nil {
		return fmt.Errorf("map sample ring buffer: %w", err)
	}
	return nil
}

func flag(on bool) uint32 {
	if on {
		return 1
	}
	return 0
}

func setVariables(spec *ebpf.CollectionSpec, values map[string]any) error {
	var errs []error
	for name, value := range values {
		if err := spec.Variables[name].Set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// watermark of unread bytes that wakes the reader of a ring buffer.
func watermark(ringBytes int) uint64 { return uint64(ringBytes / 4) }

// loadObjects loads what objs names. Maps in shared are used instead of new ones.
func (s *Sampler) loadObjects(spec *ebpf.CollectionSpec, objs any, shared map[string]*ebpf.Map) error {
	// No level of the verifier's log: a program that is refused is loaded once more with one,
	// and for those that are not the log would only take memory.
	s.mu.Lock()
	types := cmp.Or(s.types, btf.NewCache())
	s.mu.Unlock()
	kernel, err := types.Kernel()
	if err != nil {
		return fmt.Errorf("read the kernel's types: %w", err)
	}
	// All that the programs refer to is the kernel's own. Without its types, those of all modules would be read.
	opts := ebpf.CollectionOptions{MapReplacements: shared, Cache: types, Programs: ebpf.ProgramOptions{KernelTypes: kernel}}
	if err := spec.LoadAndAssign(objs, &opts); err != nil {
		var verifier *ebpf.VerifierError
		if errors.As(err, &verifier) && s.config.WholeVerifierLog {
			return fmt.Errorf("load programs: %+v", verifier) //nolint:errorlint // %+v prints the verifier's whole log
		}
		return fmt.Errorf("load programs: %w", s.kernel.loadError(err))
	}
	return nil
}

// Follow starts the events of processes and mappings; samples wait for Start.
// Called before Scan, it leaves no gap between the two.
func (s *Sampler) Follow() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	for _, prog := range s.followers() {
		l, err := link.AttachTracing(link.TracingOptions{Program: prog})
		if err != nil {
			return fmt.Errorf("attach %s: %w", prog, err)
		}
		s.lifecycle = append(s.lifecycle, l)
	}
	s.contextHook.attach()
	cpus, err := readCPUs(onlineCPUsPath)
	if err != nil {
		return err
	}
	return s.sideband.follow(cpus)
}

// followers are the programs that follow the life of processes.
func (s *Sampler) followers() []*ebpf.Program {
	return []*ebpf.Program{s.objs.ProcessFork, s.objs.ProcessExec, s.objs.ProcessExit}
}

// Start begins to sample on every online CPU.
func (s *Sampler) Start() error {
	s.mu.Lock()
	s.types = nil
	if s.clocks == nil {
		s.clocks = map[int]*clock{}
	}
	s.mu.Unlock()
	return s.followCPUs()
}

// Read waits for the next sample. ErrIdle comes when none arrived for a while,
// ErrDrained once after Drain, ErrClosed after Close. A *FormatError concerns
// one record only.
func (s *Sampler) Read(r *Record) error {
	if err := s.samples.read(&r.raw); err != nil {
		return err
	}
	return r.parse()
}

// Drain makes Read return ErrDrained once it has returned all records that are
// in the ring buffer now.
func (s *Sampler) Drain() { s.samples.drain() }

// Hurry has samples read soon after they were taken for the next seconds; else they wait longer, which
// costs less. It is for when what they refer to may be gone.
func (s *Sampler) Hurry() { s.samples.hurry() }

// UnreadBytes in the sample ring buffer.
func (s *Sampler) UnreadBytes() int { return s.samples.unreadBytes() }

// Stop ends sampling: when it returns, nothing is sampled any more and the
// counters of samples are final. Records can still be read. Events of processes go on until Close:
// what the last samples are named by is still being looked at, and an exec must not go unseen.
func (s *Sampler) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop()
}

func (s *Sampler) stop() error {
	var errs []error
	for _, c := range s.clocks {
		errs = append(errs, c.close())
	}
	s.clocks = nil
	return errors.Join(append(errs, s.contextHook.detach())...)
}

// unfollow ends the events of processes.
func (s *Sampler) unfollow() error {
	var errs []error
	for _, l := range s.lifecycle {
		errs = append(errs, l.Close())
	}
	s.lifecycle = nil
	return errors.Join(errs...)
}

// Close releases everything and ends waiting reads. It may be called twice.
func (s *Sampler) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	errs := []error{s.stop(), s.unfollow(), s.online.close()}
	if s.samples != nil {
		errs = append(errs, s.samples.close())
	}
	if s.events != nil {
		errs = append(errs, s.events.close())
	}
	if s.sideband != nil {
		errs = append(errs, s.sideband.close())
	}
	errs = append(errs, s.contextHook.close(), s.objs.Close())
	s.tablesMu.Lock()
	defer s.tablesMu.Unlock()
	s.slotsMu.Lock() // workers that were left behind may still tell of mappings
	defer s.slotsMu.Unlock()
	return errors.Join(append(errs, s.tables.close())...)
}
