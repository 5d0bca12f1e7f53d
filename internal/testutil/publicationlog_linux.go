// SPDX-License-Identifier: Apache-2.0

package testutil

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const publicationLogMagic = "CLPUBLG1"

// publicationPart mirrors struct publication_log_part of
// testdata/writers/publication_log.h; the records follow it.
type publicationPart struct {
	magic    [8]byte
	owner    uint64
	capacity uint64
	newest   uint64
	_        [4]uint64
}

type publicationRecord struct{ from, until uint64 }

const (
	publicationPartBytes   = int(unsafe.Sizeof(publicationPart{}))
	publicationRecordBytes = int(unsafe.Sizeof(publicationRecord{}))
)

// PublicationLog is memory in which a program says, while it runs, when each of its label
// sets was current: for each thread, or goroutine, the newest ones.
type PublicationLog struct {
	file  *os.File
	parts []*PublicationPart
}

// PublicationPart is what one thread or goroutine, its owner, says.
type PublicationPart struct {
	header  *publicationPart
	records []publicationRecord
}

// NewPublicationLog makes a log for so many owners, with room for so many sets of each.
// It goes at the end of the test.
func NewPublicationLog(t testing.TB, owners, sets int) *PublicationLog {
	t.Helper()
	partBytes := publicationPartBytes + sets*publicationRecordBytes
	partBytes -= partBytes % publicationPartBytes
	size := owners * partBytes
	// Not in a file system: writing it back would stop the writer in its stores.
	fd, err := unix.MemfdCreate("publications", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "publications")
	t.Cleanup(func() { _ = file.Close() })
	if err := file.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	log := &PublicationLog{file: file}
	for start := 0; start < size; start += partBytes {
		log.parts = append(log.parts, publicationPartAt(memory[start:start+partBytes]))
	}
	return log
}

func publicationPartAt(memory []byte) *PublicationPart {
	records := (len(memory) - publicationPartBytes) / publicationRecordBytes
	return &PublicationPart{
		header:  (*publicationPart)(unsafe.Pointer(&memory[0])),
		records: unsafe.Slice((*publicationRecord)(unsafe.Pointer(&memory[publicationPartBytes])), records),
	}
}

// Path is where other programs find the log while this one runs.
func (l *PublicationLog) Path() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), l.file.Fd())
}

// Part returns that of an owner, nil if it has not begun to log.
func (l *PublicationLog) Part(owner uint64) *PublicationPart {
	for _, p := range l.parts {
		if atomic.LoadUint64(&p.header.newest) > 0 && p.header.owner == owner &&
			string(p.header.magic[:]) == publicationLogMagic && p.header.capacity == uint64(len(p.records)) {
			return p
		}
	}
	return nil
}

// A Publication is whether a set was current at an instant.
type Publication int

const (
	// PublicationCurrent is a set that was current.
	PublicationCurrent Publication = iota
	// PublicationPast is a set that had been replaced.
	PublicationPast
	// PublicationFuture is a set that had not been published.
	PublicationFuture
	// PublicationForgotten is a set that the log no longer has, and of which it cannot be
	// said by the sets that it has that it was past.
	PublicationForgotten
)

// At tells whether set n was current at an instant that lies in [from, to], by
// CLOCK_MONOTONIC. If it was, only says that no other set can have been; and beyond is by
// how much the middle of that span was outside the times that the log has, which is
// not more than half of it.
func (p *PublicationPart) At(n, from, to uint64) (at Publication, only bool, beyond uint64) {
	newest := atomic.LoadUint64(&p.header.newest)
	if n == 0 || n > newest {
		return PublicationFuture, false, 0
	}
	set := p.read(n)
	before, after := p.read(n-1), p.read(n+1)
	// The next set is being written in the place of the oldest before it is counted.
	oldest := atomic.LoadUint64(&p.header.newest) + 2
	oldest -= min(oldest, uint64(len(p.records)))
	if n < oldest {
		if p.afterOldest(from) {
			return PublicationPast, false, 0
		}
		return PublicationForgotten, false, 0
	}
	middle := from + (to-from)/2
	switch {
	case to < set.from:
		return PublicationFuture, false, 0
	case set.until != 0 && from > set.until:
		return PublicationPast, false, 0
	case middle < set.from:
		beyond = set.from - middle
	case set.until != 0 && middle > set.until:
		beyond = middle - set.until
	}
	only = (n == 1 || n-1 >= oldest && from > before.until && before.until != 0) && (n+1 > newest || to < after.from)
	return PublicationCurrent, only, beyond
}

func (p *PublicationPart) read(n uint64) publicationRecord {
	r := &p.records[n%uint64(len(p.records))]
	return publicationRecord{atomic.LoadUint64(&r.from), atomic.LoadUint64(&r.until)}
}

// afterOldest reports whether an instant is later than a set that the log has and all
// before it.
func (p *PublicationPart) afterOldest(ns uint64) bool {
	// In the middle: what is read is not written meanwhile.
	n := atomic.LoadUint64(&p.header.newest) - uint64(len(p.records))/2
	return ns > p.read(n).from
}
