//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// ring reads a BPF ring buffer. It waits in Go's network poller: a wait in a system
// call of its own would hold one of the runtime's processors, which the runtime then
// watches, at a cost of several times that of reading a few samples.
type ring struct {
	reader *ringbuf.Reader // its deadline has always passed: it never waits
	file   *os.File        // the map's descriptor, a copy
	wait   syscall.RawConn
	delay  time.Duration // the longest that a record waits to be read
	// enough unread bytes wake the reader.
	enough   int
	idle     bool               // a wait has ended without a record
	woken    bool               // in this wait
	ready    func(uintptr) bool // made once: a wait allocates nothing
	draining atomic.Bool

	mu     sync.Mutex
	closed bool
}

// newRing reads m, whose records wake the reader when there are enough bytes of them.
func newRing(m *ebpf.Map, enough int, delay time.Duration) (*ring, error) {
	fd, err := unix.FcntlInt(uintptr(m.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("copy descriptor: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else the poller does not take it
		return nil, errors.Join(fmt.Errorf("set not to block: %w", err), unix.Close(fd))
	}
	r := &ring{file: os.NewFile(uintptr(fd), "ring buffer"), enough: enough, delay: delay}
	r.ready = r.isReady
	if r.wait, err = r.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	if err := r.setDeadline(); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for records: %w", err), r.file.Close())
	}
	if r.reader, err = ringbuf.NewReader(m); err != nil {
		return nil, errors.Join(err, r.file.Close())
	}
	r.reader.SetDeadline(time.Unix(0, 1))
	return r, nil
}

// read returns the next record. ErrIdle comes about once in each delay, when there is
// none.
func (r *ring) read(raw *ringbuf.Record) error {
	for {
		drain := r.draining.Load() // before the look that finds nothing more
		err := os.ErrDeadlineExceeded
		if r.unreadBytes() > 0 { // else the reader would ask its own poller
			err = r.reader.ReadInto(raw)
		}
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

// await returns when there is enough, or the delay has passed since it did so last.
func (r *ring) await() error {
	if r.draining.Load() { // drain may have come before the deadline was set anew
		return nil
	}
	r.woken = false
	err := r.wait.Read(r.ready)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.idle = true
		_ = r.setDeadline() // closed: the next wait says so
		return nil
	case r.isClosed(): // of which the poller's own error says nothing
		return ErrClosed
	}
	return fmt.Errorf("wait for records: %w", err)
}

// setDeadline of the next wait. To do so at once, before anything is read, is cheaper:
// later, another thread waits for the poller already, and has to be woken to hear of it.
func (r *ring) setDeadline() error {
	return r.file.SetReadDeadline(time.Now().Add(r.delay))
}

// isReady reports whether a wait is over. A wake-up from before the wait is not seen again.
func (r *ring) isReady(uintptr) bool {
	done := r.woken || r.unreadBytes() >= r.enough
	r.woken = true
	return done
}

// drain makes read return ErrDrained when it has returned all that is there.
func (r *ring) drain() error {
	r.draining.Store(true)
	if err := r.file.SetReadDeadline(time.Unix(0, 1)); err != nil {
		return fmt.Errorf("drain ring buffer: %w", err)
	}
	return nil
}

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
	return errors.Join(r.file.Close(), r.reader.Close())
}
