//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/customlabels/otelcol-customlabels/internal/record"
	"github.com/customlabels/otelcol-customlabels/internal/wakeup"
)

// The kernel tells of new executable mappings only in the side-band records of
// a perf event (no tracepoint has them). One dummy event for each CPU carries
// them; all that is taken from a record is whose mappings changed, and when.

const (
	// sidebandBytes of ring buffer for each CPU, or a page if that is larger; a power of two. With a page before it,
	// it is far below what the kernel lets anybody have (kernel.perf_event_mlock_kb, 512 and a page), whatever a
	// page is: more takes CAP_IPC_LOCK.
	sidebandBytes = 64 << 10
	// deadAtOnce is how many CPUs that went offline are noticed at a time.
	deadAtOnce = 8
	// Record types of include/uapi/linux/perf_event.h.
	perfRecordLost  = 2
	perfRecordMmap2 = 10
	perfHeaderBytes = 8
	// perfInodeAt is where PERF_RECORD_MMAP2 has the inode (include/uapi/linux/perf_event.h).
	perfInodeAt = 48
	// perfTimeBytes end a record: PERF_SAMPLE_TIME alone, by sample_id_all.
	perfTimeBytes = 8
)

type sideband struct {
	epoll int // of the rings
	// outer is an epoll descriptor with epoll and pause in it. Go's poller waits for it: a wait
	// in a system call of its own would hold one of the runtime's processors. While more is let
	// come, wake-ups by records are kept from the poller: it would take one for each, whoever waits.
	outer *os.File
	wait  syscall.RawConn
	pause wakeup.Timer // ends that

	mu       sync.Mutex
	rings    map[int]*sidebandRing // by CPU
	hung     [deadAtOnce]unix.EpollEvent
	followed bool // the CPUs that were online first have rings
	lost     bool // records were, or there was no ring for them; not told yet
	closed   bool
	drained  func() // of a test, what comes in between; nil
}

type sidebandRing struct {
	fd   int
	mem  []byte // one page of struct perf_event_mmap_page, then the data
	dead bool   // its descriptor has been hung up
}

func newSideband() (*sideband, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll descriptor: %w", err)
	}
	sb := &sideband{epoll: epoll, rings: map[int]*sidebandRing{}}
	if sb.pause, err = wakeup.NewTimer(); err != nil {
		return nil, errors.Join(err, unix.Close(epoll))
	}
	if err := sb.openOuter(); err != nil {
		return nil, errors.Join(err, sb.pause.Close(), unix.Close(epoll))
	}
	return sb, nil
}

func (sb *sideband) openOuter() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make epoll descriptor: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // else the poller does not take it
		return errors.Join(fmt.Errorf("set not to block: %w", err), unix.Close(fd))
	}
	sb.outer = os.NewFile(uintptr(fd), "side-band events")
	for _, inner := range []int{sb.epoll, sb.pause.FD()} {
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, inner, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
			return errors.Join(fmt.Errorf("nest descriptor: %w", err), sb.outer.Close())
		}
	}
	if sb.wait, err = sb.outer.SyscallConn(); err != nil {
		return errors.Join(err, sb.outer.Close())
	}
	return nil
}

// listen says whether records wake the poller; sb.mu is held.
func (sb *sideband) listen(outer int, yes bool) {
	event := unix.EpollEvent{}
	if yes {
		event.Events = unix.EPOLLIN
	}
	// It cannot fail: it is there. If it did, wake-ups would only cost more, or come with the next
	// CPU. It does not block: see package wakeup.
	_, _, _ = unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(outer), unix.EPOLL_CTL_MOD, uintptr(sb.epoll),
		uintptr(unsafe.Pointer(&event)), 0, 0)
}

// letCome keeps wake-ups from the poller for a time; false after close.
func (sb *sideband) letCome(outer int, gap time.Duration) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return false
	}
	sb.listen(outer, false)
	if gap < maxGather {
		sb.pause.Set(gap)
	} else {
		sb.pause.SetMultiple(gap) // other things come at multiples, too
	}
	return true
}

// come reports whether that time has passed.
func (sb *sideband) come() bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return sb.closed || sb.pause.Expired()
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
		if err := sb.watch(ring); err != nil {
			errs = append(errs, err, ring.close())
			continue
		}
		sb.rings[cpu] = ring
		sb.lost = sb.lost || sb.followed // what came before it was watched
	}
	for cpu, ring := range sb.rings {
		if !online[cpu] {
			errs = append(errs, sb.forget(cpu, ring))
		}
	}
	sb.followed = true
	return errors.Join(errs...)
}

// forget closes the ring of a CPU. What is unread in it is lost; sb.mu is held.
func (sb *sideband) forget(cpu int, ring *sidebandRing) error {
	sb.lost = sb.lost || ring.unread() > 0
	delete(sb.rings, cpu)
	return ring.close()
}

// takeLost reports whether records were lost since it reported that last.
func (sb *sideband) takeLost() bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	lost := sb.lost
	sb.lost = false
	return lost
}

// watch makes records of a ring end the wait.
func (sb *sideband) watch(ring *sidebandRing) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(ring.fd)}
	if err := unix.EpollCtl(sb.epoll, unix.EPOLL_CTL_ADD, ring.fd, &event); err != nil {
		return fmt.Errorf("watch side-band event: %w", err)
	}
	return nil
}

// sidebandMapBytes are those of a ring and the page before it.
func sidebandMapBytes(page int) int { return page + max(page, sidebandBytes) }

func openSidebandRing(cpu int) (*sidebandRing, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_DUMMY,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitWatermark |
			unix.PerfBitSampleIDAll | unix.PerfBitUseClockID,
		Sample_type: unix.PERF_SAMPLE_TIME,
		Clockid:     unix.CLOCK_MONOTONIC,
		Wakeup:      1,
	}
	fd, err := unix.PerfEventOpen(&attr, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open side-band event on CPU %d: %w", cpu, err)
	}
	mem, err := unix.Mmap(fd, 0, sidebandMapBytes(os.Getpagesize()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map side-band ring of CPU %d: %w", cpu, err), unix.Close(fd))
	}
	return &sidebandRing{fd: fd, mem: mem}, nil
}

func (r *sidebandRing) close() error { return errors.Join(unix.Munmap(r.mem), unix.Close(r.fd)) }

// size is how many bytes of records it holds.
func (r *sidebandRing) size() uint64 { return uint64(len(r.mem) - os.Getpagesize()) }

func (r *sidebandRing) page() *unix.PerfEventMmapPage {
	return (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.mem[0]))
}

// unread is how many bytes of records have not been drained.
func (r *sidebandRing) unread() uint64 {
	page := r.page()
	return atomic.LoadUint64(&page.Data_head) - page.Data_tail
}

// sidebandRecord is what is read of a record.
type sidebandRecord struct {
	kind, pid uint32
	file      bool // an inode is mapped
	timeNs    uint64
}

// drain calls visit for each record and frees its place; it returns how many bytes they were.
func (r *sidebandRing) drain(visit func(sidebandRecord)) (drained uint64) {
	page := r.page()
	data := r.mem[os.Getpagesize():]
	size := r.size()
	head := atomic.LoadUint64(&page.Data_head)
	tail := page.Data_tail
	drained = head - tail
	for head-tail >= perfHeaderBytes {
		var begin [perfInodeAt + 8]byte
		var end [perfTimeBytes]byte
		copyRing(begin[:perfHeaderBytes], data, tail)
		length := uint64(binary.NativeEndian.Uint16(begin[6:]))
		if length < perfHeaderBytes+4+perfTimeBytes || length > head-tail || length > size {
			tail = head // not what the kernel writes; start afresh
			break
		}
		copyRing(begin[:min(length, uint64(len(begin)))], data, tail)
		copyRing(end[:], data, tail+length-perfTimeBytes)
		visit(sidebandRecord{
			kind: binary.NativeEndian.Uint32(begin[:]), pid: binary.NativeEndian.Uint32(begin[perfHeaderBytes:]),
			file: binary.NativeEndian.Uint64(begin[perfInodeAt:]) != 0, timeNs: binary.NativeEndian.Uint64(end[:]),
		})
		tail += length
	}
	atomic.StoreUint64(&page.Data_tail, tail)
	return drained
}

// copyRing copies len(dst) bytes from position at of the ring, which may wrap.
func copyRing(dst, ring []byte, at uint64) {
	at %= uint64(len(ring))
	n := copy(dst, ring[at:])
	copy(dst[n:], ring)
}

// ReadMappingEvents waits for new executable mappings and calls visit with the processes that
// have some, once for a run of mappings, with the time of the last, and of the first one of a file. It returns ErrClosed after
// Close. It may be called once; visit must not block, call the Sampler or keep the events.
func (s *Sampler) ReadMappingEvents(visit func([]record.Event)) error { return s.sideband.run(visit) }

func (sb *sideband) run(visit func([]record.Event)) error {
	var burst burst
	var told []record.Event
	gathering := false
	// One call for all: what comes between two waits of it is not lost.
	err := sb.wait.Read(func(fd uintptr) bool {
		if gathering && !sb.come() {
			return false
		}
		if !gathering {
			if gap := burst.gather(); gap > 0 {
				gathering = sb.letCome(int(fd), gap)
				return !gathering
			}
		}
		var crowded, open bool
		told, crowded, open = sb.take(int(fd), gathering, told[:0])
		gathering = false
		visit(told)
		burst.read(crowded)
		return !open
	})
	if !sb.open() {
		return ErrClosed
	}
	return fmt.Errorf("wait for side-band records: %w", err)
}

func (sb *sideband) open() bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return !sb.closed
}

// drop closes the ring of a CPU; follow opens a new one.
func (sb *sideband) drop(cpu int) error {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	ring := sb.rings[cpu]
	if ring == nil {
		return nil
	}
	return sb.forget(cpu, ring)
}

// take adds what has come since to events, and reports whether a ring was crowded; it is not open after
// close. From then on, records wake the poller, from which gathered says that they were kept.
//
// Who polls a ring takes the wake-up away with it (perf_poll in kernel/events/core.c), and to listen is to
// poll, too: a record that came between would not be told of before the next one. So the rings are drained
// after all that polls them.
func (sb *sideband) take(outer int, gathered bool, events []record.Event) (_ []record.Event, crowded, open bool) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return events, false, false
	}
	sb.findDead()
	if gathered {
		sb.listen(outer, true)
	}
	events, crowded = sb.drain(events)
	if sb.drained != nil {
		sb.drained()
	}
	for cpu, ring := range sb.rings {
		if ring.dead {
			_ = sb.forget(cpu, ring) // its CPU went offline; nothing is to be done about an error
		}
	}
	return events, crowded, true
}

// findDead marks the rings whose descriptors have been hung up; sb.mu is held.
func (sb *sideband) findDead() {
	// It does not block: see package wakeup. Interrupted: it is said again.
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(sb.epoll), uintptr(unsafe.Pointer(&sb.hung[0])),
		uintptr(len(sb.hung)), 0, 0, 0)
	if errno != 0 {
		return
	}
	for _, ev := range sb.hung[:n] {
		if ev.Events&(unix.EPOLLHUP|unix.EPOLLERR) == 0 {
			continue
		}
		for _, ring := range sb.rings {
			ring.dead = ring.dead || ring.fd == int(ev.Fd)
		}
	}
}

// drain adds what is in the rings to events, and reports whether one was crowded; sb.mu is held.
func (sb *sideband) drain(events []record.Event) (_ []record.Event, crowded bool) {
	for _, ring := range sb.rings {
		drained := ring.drain(func(r sidebandRecord) {
			switch {
			case r.kind == perfRecordLost:
				events = append(events, record.Event{Kind: record.EventMappingsLost})
				return
			case r.kind != perfRecordMmap2:
				return
			case len(events) == 0 || events[len(events)-1].PID != int(r.pid) || r.file && apart(&events[len(events)-1], r.timeNs):
				events = append(events, record.Event{Kind: record.EventMapping, PID: int(r.pid)})
			}
			ev := &events[len(events)-1]
			ev.TimeNs = max(ev.TimeNs, r.timeNs)
			if r.file && (ev.FileNs == 0 || r.timeNs < ev.FileNs) {
				ev.FileNs = r.timeNs
			}
		})
		crowded = crowded || drained > ring.size()/crowdedShare
		if ring.size()-drained < maxMappingRecord {
			// What had no room is told only before the next record, which may be long in coming.
			events = append(events, record.Event{Kind: record.EventMappingsLost})
		}
	}
	return events, crowded
}

// maxMappingRecord are the bytes of the longest record: PERF_RECORD_MMAP2 with a path of PATH_MAX, and PERF_RECORD_LOST
// before it.
const maxMappingRecord = unix.PathMax + 256

// maxFilesApart is how far the mappings of files are apart that one event tells of: between others, the process
// may be looked at.
const maxFilesApart = 10 * time.Millisecond

// apart reports whether a file was mapped too long after the first one that an event tells of.
func apart(ev *record.Event, ns uint64) bool {
	return ev.FileNs != 0 && ns > ev.FileNs+uint64(maxFilesApart)
}

func (sb *sideband) close() error {
	sb.mu.Lock()
	var errs []error
	if !sb.closed {
		sb.closed = true
		errs = append(errs, unix.Close(sb.epoll), sb.pause.Close())
		for cpu, ring := range sb.rings {
			errs = append(errs, ring.close())
			delete(sb.rings, cpu)
		}
	}
	sb.mu.Unlock() // the reader may want it before it lets go of the descriptor
	return errors.Join(append(errs, sb.outer.Close())...)
}
