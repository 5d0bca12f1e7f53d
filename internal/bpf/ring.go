//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// ring reads a BPF ring buffer.
type ring struct {
	reader *ringbuf.Reader // its deadline has always passed: it never waits
	waiter *wakeup.Waiter  // for a record that wakes, and each time that a delay has passed
	// enough unread bytes wake the reader.
	enough   int
	idle     bool        // a delay has ended without a record
	ready    func() bool // made once: a wait allocates nothing
	draining atomic.Bool

	mu     sync.Mutex
	closed bool
}

// newRing reads m, whose records wake the reader when there are enough bytes of them; others
// wait for at most a delay in a hurry, and else for at most a longer one.
func newRing(m *ebpf.Map, enough int, delay, slow time.Duration) (*ring, error) {
	waiter, err := wakeup.NewSlowing(delay, slow, m.FD())
	if err != nil {
		return nil, fmt.Errorf("wait for records: %w", err)
	}
	r := &ring{waiter: waiter, enough: enough}
	r.ready = r.hasEnough
	if r.reader, err = ringbuf.NewReader(m); err != nil {
		return nil, errors.Join(err, waiter.Close())
	}
	r.reader.SetDeadline(time.Unix(0, 1))
	return r, nil
}

// read returns the next record. ErrIdle comes about once in each delay, when there is
// none.
func (r *ring) read(raw *ringbuf.Record) error {
	for {
		drain := r.draining.Load() // before the look that finds nothing more
		err := r.take(raw)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ringbuf.ErrClosed):
			return ErrClosed
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("read record: %w", err)
		case drain:
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

// take returns the next record that is there, or os.ErrDeadlineExceeded.
func (r *ring) take(raw *ringbuf.Record) error {
	if r.unreadBytes() == 0 {
		return os.ErrDeadlineExceeded // the reader would ask its own poller
	}
	return r.reader.ReadInto(raw)
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

func (r *ring) hasEnough() bool { return r.unreadBytes() >= r.enough }

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
	return r.closed
}

func (r *ring) unreadBytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0
	}
	return r.reader.AvailableBytes()
}

// close ends a read that waits.
func (r *ring) close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return errors.Join(r.waiter.Close(), r.reader.Close())
}
