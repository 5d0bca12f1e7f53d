//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel tells of new executable mappings only in the side-band records of
// a perf event (no tracepoint has them). One dummy event for each CPU carries
// them; all that is taken from a record is whose mappings changed.

const (
	// sidebandPages of ring buffer for each CPU; a power of two.
	sidebandPages = 16
	// Record types of include/uapi/linux/perf_event.h.
	perfRecordLost  = 2
	perfRecordMmap2 = 10
	perfHeaderBytes = 8
)

// MappingEvent says that a process mapped something executable.
type MappingEvent struct {
	// PID as the reader's PID namespace sees it.
	PID uint32
	// Lost says that records were lost: any process may have new mappings.
	Lost bool
}

type sideband struct {
	wake int // eventfd that ends a wait

	mu      sync.Mutex
	rings   map[int]*sidebandRing // by CPU
	running bool                  // run owns wake and closes it
	closed  bool
}

type sidebandRing struct {
	fd  int
	mem []byte // one page of struct perf_event_mmap_page, then the data
}

func newSideband() (*sideband, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("make eventfd: %w", err)
	}
	return &sideband{wake: wake, rings: map[int]*sidebandRing{}}, nil
}

// follow opens events on the CPUs that have none yet and drops those of other CPUs.
func (sb *sideband) follow(cpus []int) error {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return nil
	}
	online := map[int]bool{}
	var errs []error
	changed := false
	for _, cpu := range cpus {
		online[cpu] = true
		if sb.rings[cpu] != nil {
			continue
		}
		ring, err := openSidebandRing(cpu)
		if errors.Is(err, unix.ENODEV) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sb.rings[cpu], changed = ring, true
	}
	for cpu, ring := range sb.rings {
		if !online[cpu] {
			errs = append(errs, ring.close())
			delete(sb.rings, cpu)
			changed = true
		}
	}
	if changed {
		sb.interrupt()
	}
	return errors.Join(errs...)
}

func openSidebandRing(cpu int) (*sidebandRing, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_DUMMY,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:   unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitWatermark,
		Wakeup: 1,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open side-band event on CPU %d: %w", cpu, err)
	}
	mem, err := unix.Mmap(fd, 0, (1+sidebandPages)*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map side-band ring of CPU %d: %w", cpu, err), unix.Close(fd))
	}
	return &sidebandRing{fd: fd, mem: mem}, nil
}

func (r *sidebandRing) close() error { return errors.Join(unix.Munmap(r.mem), unix.Close(r.fd)) }

// drain calls visit for each record and frees its place.
func (r *sidebandRing) drain(visit func(kind uint32, body []byte)) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.mem[0]))
	data := r.mem[os.Getpagesize():]
	size := uint64(len(data))
	head := atomic.LoadUint64(&page.Data_head)
	tail := page.Data_tail
	var body [64]byte // as much of a record as anyone looks at
	for head-tail >= perfHeaderBytes {
		var header [perfHeaderBytes]byte
		copyRing(header[:], data, tail)
		length := uint64(binary.NativeEndian.Uint16(header[6:]))
		if length < perfHeaderBytes || length > head-tail || length > size {
			tail = head // not what the kernel writes; start afresh
			break
		}
		n := min(length-perfHeaderBytes, uint64(len(body)))
		copyRing(body[:n], data, tail+perfHeaderBytes)
		visit(binary.NativeEndian.Uint32(header[:]), body[:n])
		tail += length
	}
	atomic.StoreUint64(&page.Data_tail, tail)
}

// copyRing copies len(dst) bytes from position at of the ring, which may wrap.
func copyRing(dst, ring []byte, at uint64) {
	at %= uint64(len(ring))
	n := copy(dst, ring[at:])
	copy(dst[n:], ring)
}

func (sb *sideband) interrupt() {
	one := [8]byte{1}
	_, _ = unix.Write(sb.wake, one[:]) // fails only when the counter is full, that is, when a wake-up is pending
}

// pollFDs appends the descriptors to wait for.
func (sb *sideband) pollFDs(fds []unix.PollFd) ([]unix.PollFd, bool) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return nil, false
	}
	fds = append(fds[:0], unix.PollFd{Fd: int32(sb.wake), Events: unix.POLLIN})
	for _, ring := range sb.rings {
		fds = append(fds, unix.PollFd{Fd: int32(ring.fd), Events: unix.POLLIN})
	}
	return fds, true
}

// ReadMappingEvents waits for new executable mappings and calls visit for each
// process that has some, once for a run of mappings. It returns ErrClosed after
// Close. It may be called once; visit must not block nor call the Sampler.
func (s *Sampler) ReadMappingEvents(visit func(MappingEvent)) error { return s.sideband.run(visit) }

func (sb *sideband) run(visit func(MappingEvent)) error {
	if !sb.begin() {
		return ErrClosed
	}
	defer unix.Close(sb.wake)
	var fds []unix.PollFd
	for {
		var open bool
		if fds, open = sb.pollFDs(fds); !open {
			return ErrClosed
		}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for side-band records: %w", err)
		}
		if fds[0].Revents != 0 {
			var counter [8]byte
			_, _ = unix.Read(sb.wake, counter[:])
		}
		sb.drain(visit)
		sb.dropDead(fds[1:])
	}
}

func (sb *sideband) begin() bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.running = !sb.closed
	return sb.running
}

// drop closes the ring of a CPU; follow opens a new one.
func (sb *sideband) drop(cpu int) error {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	ring := sb.rings[cpu]
	if ring == nil {
		return nil
	}
	delete(sb.rings, cpu)
	return ring.close()
}

// dropDead drops the rings whose descriptors poll has found to be hung up.
func (sb *sideband) dropDead(fds []unix.PollFd) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	for _, fd := range fds {
		if fd.Revents&(unix.POLLHUP|unix.POLLERR) == 0 {
			continue
		}
		for cpu, ring := range sb.rings {
			if ring.fd == int(fd.Fd) {
				_ = ring.close() // its CPU went offline; nothing is to be done about an error
				delete(sb.rings, cpu)
			}
		}
	}
}

func (sb *sideband) drain(visit func(MappingEvent)) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return
	}
	last := uint32(0)
	for _, ring := range sb.rings {
		ring.drain(func(kind uint32, body []byte) {
			switch {
			case kind == perfRecordLost:
				visit(MappingEvent{Lost: true})
			case kind == perfRecordMmap2 && len(body) >= 4:
				if pid := binary.NativeEndian.Uint32(body); pid != last {
					last = pid
					visit(MappingEvent{PID: pid})
				}
			}
		})
	}
}

func (sb *sideband) close() error {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.closed = true
	var errs []error
	for cpu, ring := range sb.rings {
		errs = append(errs, ring.close())
		delete(sb.rings, cpu)
	}
	if sb.running {
		sb.interrupt()
	} else {
		errs = append(errs, unix.Close(sb.wake))
	}
	return errors.Join(errs...)
}
