// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// A publicationLog says when each set of a goroutine was current, as
// testdata/writers/publication_log.h does for threads, in memory that a test made and
// reads meanwhile. A nil log says nothing.
type publicationLog struct {
	header  *publicationHeader
	records []publicationRecord
}

type publicationHeader struct {
	magic    [8]byte
	owner    uint64 // the number of the goroutine
	capacity uint64
	newest   uint64
	_        [4]uint64
}

type publicationRecord struct{ from, until uint64 }

// openPublicationLogs maps a file for so many goroutines.
func openPublicationLogs(path string, goroutines int) ([]*publicationLog, error) {
	logs := make([]*publicationLog, goroutines)
	if path == "" {
		return logs, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	const headerBytes = int(unsafe.Sizeof(publicationHeader{}))
	partBytes := len(memory) / goroutines / headerBytes * headerBytes
	for id := range logs {
		part := memory[id*partBytes:][:partBytes]
		l := &publicationLog{header: (*publicationHeader)(unsafe.Pointer(&part[0]))}
		sets := (partBytes - headerBytes) / int(unsafe.Sizeof(publicationRecord{}))
		l.records = unsafe.Slice((*publicationRecord)(unsafe.Pointer(&part[headerBytes])), sets)
		l.header.owner, l.header.capacity = uint64(id), uint64(sets)
		copy(l.header.magic[:], "CLPUBLG1")
		logs[id] = l
	}
	return logs, nil
}

func (l *publicationLog) record(n uint64) *publicationRecord {
	return &l.records[n%uint64(len(l.records))]
}

// before is called before set n, which is 1 or follows the one before, is made current.
func (l *publicationLog) before(n uint64) {
	if l == nil {
		return
	}
	r := l.record(n)
	atomic.StoreUint64(&r.until, 0)
	atomic.StoreUint64(&r.from, monotonic())
	atomic.StoreUint64(&l.header.newest, n)
}

// after is called when set n is not current any more.
func (l *publicationLog) after(n uint64) {
	if l != nil {
		atomic.StoreUint64(&l.record(n).until, monotonic())
	}
}

// monotonic is the clock of samples. The runtime does not know of the call, and so the
// goroutine keeps its thread.
func monotonic() uint64 {
	const clockMonotonic = 1
	var ts syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return uint64(ts.Nano())
}
