//go:build linux && (amd64 || arm64)

package tlsmatrix

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/bpf"
	"github.com/customlabels/otelcol-customlabels/internal/labels"
	"github.com/customlabels/otelcol-customlabels/internal/process"
	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// samplesPerSecond gives a few samples in a few milliseconds.
const samplesPerSecond = 997

// keyNames is CONTEXT_KEYS of testdata/tls/publish.h.
var keyNames = [...]string{"cell", "thread", "in.exe", "in.lib", "in.a", "in.b", "in.dl"}

// sample is what matters of a sample here.
type sample struct {
	tid     int
	timeNs  uint64
	known   bool
	decoded *labels.Decoded
}

// sampling is the receiver's path of a sample, up to its labels: sampler,
// process table, label decoder.
type sampling struct {
	sampler *bpf.Sampler
	table   *process.Table
	keys    *labels.KeyMap
	running sync.WaitGroup
	drained chan struct{}
	cancel  context.CancelFunc

	mu      sync.Mutex
	ids     map[int]record.ProcessID      // by PID, of the process that has it
	samples map[record.ProcessID][]sample // of processes that are being watched
	sources map[record.ProcessID][]record.LabelSource
	errs    []error
}

func startSampling() (*sampling, error) {
	sampler, err := bpf.New(bpf.Config{SamplesPerSecond: samplesPerSecond, RingBufferBytes: 8 << 20, ReadDelay: 20 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	s := &sampling{
		sampler: sampler,
		keys:    labels.NewKeyMap(keyNames[:]),
		drained: make(chan struct{}),
		samples: map[record.ProcessID][]sample{},
		ids:     map[int]record.ProcessID{},
		sources: map[record.ProcessID][]record.LabelSource{},
	}
	alarm, err := wakeup.NewAlarm()
	if err != nil {
		return nil, errors.Join(err, sampler.Close())
	}
	s.table = process.NewTable(process.Options{Publisher: s, Alarm: alarm})
	if err := errors.Join(sampler.Follow(), sampler.Scan(s.table.HandleEvent), sampler.Start()); err != nil {
		return nil, errors.Join(err, sampler.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.running.Go(func() { s.table.Run(ctx) })
	s.running.Go(s.followProcesses)
	s.running.Go(s.followMappings)
	go s.read()
	return s, nil
}

// stop ends sampling when all samples have been read.
func (s *sampling) stop() error {
	err := s.sampler.Stop()
	s.sampler.Drain()
	<-s.drained
	s.cancel()
	err = errors.Join(err, s.sampler.Close())
	s.running.Wait()
	return errors.Join(append(s.errs, err)...)
}

func (s *sampling) followProcesses() {
	events := make([]record.Event, 64)
	for {
		n, err := s.sampler.ReadEvents(events)
		if err != nil {
			s.ended(err)
			return
		}
		s.table.HandleEvents(events[:n])
		for _, ev := range events[:n] {
			if ev.Kind == record.EventExec {
				s.mu.Lock()
				s.ids[ev.PID] = ev.Process
				s.mu.Unlock()
			}
		}
	}
}

func (s *sampling) followMappings() {
	s.ended(s.sampler.ReadMappingEvents(func(events []record.Event) { s.table.HandleEvents(events) }))
}

func (s *sampling) ended(err error) {
	if !errors.Is(err, bpf.ErrClosed) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	}
}

// read takes in samples until all have been read.
func (s *sampling) read() {
	defer close(s.drained)
	var rec bpf.Record
	for {
		err := s.sampler.Read(&rec)
		switch {
		case err == nil:
			s.table.Lookup(rec.Process, int(rec.PID), rec.UID, rec.Comm)
			s.mu.Lock()
			if list, ok := s.samples[rec.Process]; ok {
				s.samples[rec.Process] = append(list, sample{
					int(rec.TID), rec.TimeNs, len(rec.Labels) > 0, labels.Decode(s.keys, rec.Labels),
				})
			}
			s.mu.Unlock()
		case errors.Is(err, bpf.ErrIdle):
		case errors.Is(err, bpf.ErrDrained):
			return
		default:
			s.ended(err)
			return
		}
	}
}

// watch keeps the samples of a process from now on, which has its program already. It waits for the
// exec to be told, since the PID may have been another's before, or finds the process in a list: on a busy machine
// events can be lost.
func (s *sampling) watch(pid int) (id record.ProcessID, err error) {
	listed := time.Now()
	deadline := listed.Add(activeTimeout)
	for time.Now().Before(deadline) {
		if time.Since(listed) > time.Second {
			if err := s.list(pid); err != nil {
				return id, err
			}
			listed = time.Now()
		}
		s.mu.Lock()
		id, known := s.ids[pid]
		if _, another := s.samples[id]; known && !another {
			s.samples[id] = nil
			s.mu.Unlock()
			return id, nil
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	return id, fmt.Errorf("nothing tells of process %d", pid)
}

// list enters all processes, and the identity of one.
func (s *sampling) list(pid int) error {
	return s.sampler.Scan(func(ev record.Event) {
		s.table.HandleEvent(ev)
		if ev.PID == pid {
			s.mu.Lock()
			s.ids[pid] = ev.Process
			s.mu.Unlock()
		}
	})
}

// active returns the sources that the programs read of a process.
func (s *sampling) active(id record.ProcessID) []record.LabelSource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources[id]
}

// taken returns the samples of a process in a stretch of time.
func (s *sampling) taken(id record.ProcessID, sinceNs, untilNs uint64) []sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []sample
	for _, sm := range s.samples[id] {
		if sm.timeNs >= sinceNs && sm.timeNs < untilNs {
			taken = append(taken, sm)
		}
	}
	return taken
}

// Filter implements process.Publisher: nothing is left out here.
func (s *sampling) Filter(record.ProcessID) error { return nil }

// SetLabelSources implements process.Publisher.
func (s *sampling) SetLabelSources(id record.ProcessID, sources []record.LabelSource) error {
	if len(sources) == 0 {
		return s.Forget(id)
	}
	if err := s.sampler.SetLabelSources(id, sources); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sources[id] = sources
	return nil
}

// Forget implements process.Publisher.
func (s *sampling) Forget(id record.ProcessID) error {
	s.mu.Lock()
	delete(s.sources, id)
	s.mu.Unlock()
	return s.sampler.Forget(id)
}

// ForgetRunning implements process.Publisher.
func (s *sampling) ForgetRunning(id record.ProcessID) error {
	s.mu.Lock()
	delete(s.sources, id)
	s.mu.Unlock()
	return s.sampler.ForgetRunning(id)
}

func monotonicNow() uint64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // every kernel has it
	return uint64(ts.Nano())
}
