//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/customlabels/otelcol-customlabels/internal/record"
)

// MinOffCPUThreshold is the least part of all switches that can be looked at.
const MinOffCPUThreshold = 1e-6

// ringHeadBytes are before each record of a ring buffer (kernel/bpf/ringbuf.c).
const ringHeadBytes = 8

// returnBytes of the ring buffer that the return of one thread takes.
const returnBytes = ringHeadBytes + record.ThreadReturnBytes

// returnShare of the ring buffer of switches is only for returns.
const returnShare = 4

// OffCPUConfig says what is recorded of threads that leave the CPU.
type OffCPUConfig struct {
	// Threshold is the part of the switches that are looked at, drawn at random:
	// from MinOffCPUThreshold to 1.
	Threshold float64
	// RingBufferBytes for them, apart from the samples'; bounds as there. It also
	// bounds how many threads can be off the CPU at a time: one for each 128 bytes.
	RingBufferBytes int

	// UserShare is Config.UserShare of the part of the ring buffer that is not for returns.
	UserShare float64

	maxThreads int // for tests; 0: as many as fit
}

func (c *OffCPUConfig) validate() error {
	if !(c.Threshold >= MinOffCPUThreshold && c.Threshold <= 1) {
		return fmt.Errorf("off-CPU threshold %v is not between %v and 1", c.Threshold, MinOffCPUThreshold)
	}
	if err := validateUserShare(c.UserShare); err != nil {
		return err
	}
	return validateRingBytes(c.RingBufferBytes)
}

// drawBelow is the bound of a draw of 32 bits.
func (c *OffCPUConfig) drawBelow() uint64 { return uint64(math.Round(c.Threshold * (1 << 32))) }

// OffCPU follows threads off the CPU and back. It shares what the Sampler knows of
// processes, and nothing else: neither ring buffer nor scratch memory nor counters.
//
// Read is for one goroutine; the other methods may be called from anywhere.
type OffCPU struct {
	sampler *Sampler
	objs    struct {
		Samples       *ebpf.Map     `ebpf:"samples"`
		Counts        *ebpf.Map     `ebpf:"counts"`
		Users         *ebpf.Map     `ebpf:"users"`
		SwitchThreads *ebpf.Program `ebpf:"switch_threads"`
	}
	ring *ring

	mu       sync.Mutex
	attached link.Link // nil before Start and after Stop
	closed   bool
}

// OffCPU loads the program of switches. Nothing is recorded before Start, and nothing
// must be after the sampler's Close.
func (s *Sampler) OffCPU(config OffCPUConfig) (*OffCPU, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	own, err := s.ownTGID()
	if err != nil {
		return nil, err
	}
	spec, err := s.kernel.loadOffCPU()
	if err != nil {
		return nil, fmt.Errorf("read programs: %w", err)
	}
	ring := config.RingBufferBytes
	leave := ring - ring/returnShare
	mark, err := s.setUserShare(spec, config.UserShare, leave, ring)
	err = errors.Join(err, setVariables(spec, s.knobs), setVariables(spec, map[string]any{
		offcpuVarDrawBelow:        config.drawBelow(),
		offcpuVarOwnTgid:          own,
		offcpuVarWatermarkBytes:   mark,
		offcpuVarLeaveLimitBytes:  uint64(leave),
		offcpuVarSwitchTellsState: flag(s.kernel.switchState),
	}))
	if err != nil {
		return nil, fmt.Errorf("set knobs: %w", err)
	}
	config.sizeMaps(spec, s.cpus.Room)
	shared := s.objs.ofOffCPU()
	for name, m := range shared {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	o := &OffCPU{sampler: s}
	if err := s.loadObjects(spec, &o.objs, shared); err != nil {
		return nil, err
	}
	if o.ring, err = newRing(o.objs.Samples, int(mark), s.config.readDelay(), s.config.readDelay()); err != nil {
		return nil, errors.Join(fmt.Errorf("map ring buffer of switches: %w", err), o.Close())
	}
	s.slotsMu.Lock()
	defer s.slotsMu.Unlock()
	s.fixedBytes += mapsBytes(spec, s.cpus.Possible, shared)
	return o, nil
}

func (c *OffCPUConfig) sizeMaps(spec *ebpf.CollectionSpec, room int) {
	spec.Maps[offcpuMapSamples].MaxEntries = uint32(c.RingBufferBytes)
	// One less than there is room for: a ring buffer is never filled to the last byte.
	spec.Maps[offcpuMapOffCpuThreads].MaxEntries = lowered(c.maxThreads, c.RingBufferBytes/returnShare/returnBytes-1)
	spec.Maps[offcpuMapScratches].MaxEntries = uint32(room)
}

// ofOffCPU returns those that the program of switches uses as well, by name; before they are loaded, their names.
func (m *olderMaps) ofOffCPU() map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{
		offcpuMapFileRows:       m.FileRows,
		offcpuMapLabelSources:   m.LabelSources,
		offcpuMapProcesses:      m.Processes,
		offcpuMapRuntimes:       m.Runtimes,
		offcpuMapUnwindMappings: m.UnwindMappings,
		offcpuMapUnwindTables:   m.UnwindTables,
	}
	m.ofArch(shared)
	return shared
}

// ownTGID returns this process's number in the init PID namespace.
func (s *Sampler) ownTGID() (tgid uint32, err error) {
	pid := os.Getpid()
	err = s.Scan(func(ev record.Event) {
		if ev.PID == pid {
			tgid = ev.Process.TGID
		}
	})
	if err == nil && tgid == 0 {
		err = errors.New("it is not among the processes of the host")
	}
	if err != nil {
		return 0, fmt.Errorf("find the own process: %w", err)
	}
	return tgid, nil
}

// Start begins to record switches.
func (o *OffCPU) Start() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ErrClosed
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: o.objs.SwitchThreads})
	if err != nil {
		return fmt.Errorf("attach %s: %w", o.objs.SwitchThreads, err)
	}
	o.attached = l
	return nil
}

// Switch is a thread that leaves the CPU or, if Back, one that has come back. What
// it refers to is valid until the next Read into it.
type Switch struct {
	// Thread is the TID in the init PID namespace.
	Thread uint32
	// LeftNs (CLOCK_MONOTONIC) is the same when the thread leaves and when it returns.
	LeftNs uint64
	Back   bool
	// BackNs, CLOCK_MONOTONIC, if Back.
	BackNs uint64
	// Raw is the sample taken of a thread that leaves, for Record.Parse.
	Raw []byte

	raw []byte
}

// Read waits for the next switch. The errors are those of Sampler.Read.
func (o *OffCPU) Read(s *Switch) error {
	if err := o.ring.read(&s.raw); err != nil {
		return err
	}
	return s.parse(s.raw)
}

func (s *Switch) parse(b []byte) error {
	if len(b) == record.ThreadReturnBytes {
		r := (*record.ThreadReturn)(unsafe.Pointer(&b[0]))
		*s = Switch{Thread: r.Thread, LeftNs: r.LeftNs, Back: true, BackNs: r.TimeNs, raw: s.raw}
		return nil
	}
	if len(b) < record.SampleHeaderBytes {
		return &FormatError{"shorter than its header", len(b)}
	}
	h := (*record.SampleHeader)(unsafe.Pointer(&b[0]))
	*s = Switch{Thread: h.Thread, LeftNs: h.TimeNs, Raw: b, raw: s.raw}
	return nil
}

// Drain makes Read return ErrDrained once it has returned what is there now.
func (o *OffCPU) Drain() { o.ring.drain() }

// Hurry does nothing: switches are read often at all times.
func (o *OffCPU) Hurry() {}

// UnreadBytes in the ring buffer.
func (o *OffCPU) UnreadBytes() int { return o.ring.unreadBytes() }

// Stop ends the recording: when it returns, the program runs no more and the
// counters are final. What was recorded can still be read.
func (o *OffCPU) Stop() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stop()
}

func (o *OffCPU) stop() error {
	if o.attached == nil {
		return nil
	}
	err := o.attached.Close()
	o.attached = nil
	return errors.Join(err, interruptCPUs())
}

// Close releases everything and ends waiting reads. It may be called twice.
func (o *OffCPU) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil
	}
	o.closed = true
	errs := []error{o.stop()}
	if o.ring != nil {
		errs = append(errs, o.ring.close())
	}
	return errors.Join(append(errs, o.objs.SwitchThreads.Close(), o.objs.Samples.Close(), o.objs.Counts.Close(), o.objs.Users.Close())...)
}

// UserDrops is Sampler.UserDrops of switches.
func (o *OffCPU) UserDrops() (map[uint32]uint64, error) { return userDrops(o.objs.Users) }

// Counters is Sampler.Counters of switches: a hit is a switch of a task on any CPU. It counts
// no events and no reads of label sources.
func (o *OffCPU) Counters() (Counters, error) { return o.sampler.readCounters(o.objs.Counts) }
