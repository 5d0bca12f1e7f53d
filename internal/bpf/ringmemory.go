//go:build linux && (amd64 || arm64)

package bpf

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringBusy is a bit of the length before a record: it is still being written (include/uapi/linux/bpf.h).
const ringBusy = 1 << 31

// ringMemory is a BPF ring buffer as the kernel maps it (kernel/bpf/ringbuf.c): a page with the position
// that is read next, a page with the one that is written next, and the records, twice in a row, so
// that each is in one piece. No program of ours discards one. Calls must not overlap.
//
// The reader of cilium/ebpf waits for a record that is still being written without a pause, and cannot be
// closed meanwhile; who writes it may have been preempted.
type ringMemory struct {
	read          []byte // the first page
	written       []byte // what follows
	position, end *uint64
	data          []byte
}

// mapRing maps a ring buffer of so many bytes, a power of two.
func mapRing(fd, bytes int) (*ringMemory, error) {
	page := os.Getpagesize()
	read, err := unix.Mmap(fd, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map page of reader: %w", err)
	}
	written, err := unix.Mmap(fd, int64(page), page+2*bytes, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map records: %w", err), unix.Munmap(read))
	}
	return &ringMemory{
		read: read, written: written,
		position: (*uint64)(unsafe.Pointer(&read[0])), end: (*uint64)(unsafe.Pointer(&written[0])),
		data: written[page:],
	}, nil
}

// unread is how many bytes of records there are, complete or not.
func (m *ringMemory) unread() int {
	return int(atomic.LoadUint64(m.end) - atomic.LoadUint64(m.position))
}

// next returns the next record, before which there is its length; nil if there is none. busy: it is still being
// written.
func (m *ringMemory) next() (record []byte, busy bool) {
	if m.unread() == 0 {
		return nil, false
	}
	record = m.data[atomic.LoadUint64(m.position)%uint64(len(m.data)/2):]
	// What was written before the bit was cleared is read after it.
	bytes := atomic.LoadUint32((*uint32)(unsafe.Pointer(&record[0])))
	if bytes&ringBusy != 0 {
		return nil, true
	}
	return record[ringHeadBytes:][:bytes], false
}

// free frees the place of a record that next has returned.
func (m *ringMemory) free(record []byte) {
	atomic.AddUint64(m.position, uint64(ringHeadBytes+(len(record)+7)&^7))
}

func (m *ringMemory) close() error { return errors.Join(unix.Munmap(m.read), unix.Munmap(m.written)) }
