//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// ring reads a BPF ring buffer.
type ring struct {
	waiter *wakeup.Waiter // for a record that wakes, and each time that a delay has passed
	// enough unread bytes wake the reader.
	enough   int
	idle     bool        // a delay has ended without a record
	ready    func() bool // made once: a wait allocates nothing
	draining atomic.Bool

	mu     sync.Mutex
	memory *ringMemory // nil after close
}

// Why take returns no record.
var (
	errNone = errors.New("no record")
	errBusy = errors.New("the next record is still being written")
)

// busyLooks at a record that is being written take some 50 µs, in which most are complete even if a sample is taken
// meanwhile.
const busyLooks = 10_000

// newRing reads m, whose records wake the reader when there are enough bytes of them; others
// wait for at most a delay in a hurry, and else for at most a longer one.
func newRing(m *ebpf.Map, enough int, delay, slow time.Duration) (*ring, error) {
	waiter, err := wakeup.NewSlowing(delay, slow, m.FD())
	if err != nil {
		return nil, fmt.Errorf("wait for records: %w", err)
	}
	memory, err := mapRing(m.FD(), int(m.MaxEntries()))
	if err != nil {
		return nil, errors.Join(err, waiter.Close())
	}
	return newRingOf(memory, waiter, enough), nil
}

func newRingOf(memory *ringMemory, waiter *wakeup.Waiter, enough int) *ring {
	r := &ring{memory: memory, waiter: waiter, enough: enough}
	r.ready = r.hasEnough
	return r
}

// read puts the next record into raw. ErrIdle comes about once in each delay, when there is
// none, or when the next one is still being written. A ring that is drained is looked at until that is complete:
// who writes to it cannot be preempted.
func (r *ring) read(raw *[]byte) error {
	for {
		drain := r.draining.Load() // before the look that finds nothing more
		err := r.take(raw)
		switch {
		case err == nil || errors.Is(err, ErrClosed):
			return err
		case drain && errors.Is(err, errNone):
			r.draining.Store(false)
			return ErrDrained
		case r.idle:
			r.idle = false
			return ErrIdle
		}
		if err := r.await(); err != nil {
			return err
		}
	}
}

// take puts the next record into raw, if it is there.
func (r *ring) take(raw *[]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return ErrClosed
	}
	for range busyLooks {
		record, busy := r.memory.next()
		switch {
		case record != nil:
			*raw = append((*raw)[:0], record...)
			r.memory.free(record)
			return nil
		case !busy:
			return errNone
		}
	}
	return errBusy
}

// await returns when there is enough, or the delay has passed since it did so last.
func (r *ring) await() error {
	if r.draining.Load() {
		return nil
	}
	ticked, err := r.waiter.Wait(r.ready)
	switch {
	case err == nil:
		r.idle = r.idle || ticked
		return nil
	case r.isClosed():
		return ErrClosed
	}
	return err
}

// hasEnough is false while the next record is being written, behind which none can be read: who submits it
// wakes the reader, or a tick does.
func (r *ring) hasEnough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil || r.memory.unread() < r.enough {
		return false
	}
	_, busy := r.memory.next()
	return !busy
}

// drain makes read return ErrDrained when it has returned all that is there.
func (r *ring) drain() {
	r.draining.Store(true)
	r.waiter.Tick()
}

// hurryTime is how long a hurry lasts: what is new in a process is most often followed by more of it.
const hurryTime = 2 * time.Second

func (r *ring) hurry() { r.waiter.Hurry(hurryTime) }

func (r *ring) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory == nil
}

func (r *ring) unreadBytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memory == nil {
		return 0
	}
	return r.memory.unread()
}

// close ends a read that waits.
func (r *ring) close() error {
	r.mu.Lock()
	memory := r.memory
	r.memory = nil
	r.mu.Unlock()
	if memory == nil {
		return nil
	}
	return errors.Join(r.waiter.Close(), memory.close())
}
