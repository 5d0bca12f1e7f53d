// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package processcontext publishes the resource of a Go program for profilers: the process
// context of OTEP 4719. Labels are those of runtime/pprof, so that threads have none of their own.
//
// It is to be copied and needs golang.org/x/sys/unix and google.golang.org/protobuf only.
package processcontext

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
)

// The header at the start of the mapping.
type header struct {
	signature    [8]byte
	version      uint32
	payloadBytes uint32
	publishedAt  atomic.Uint64 // CLOCK_BOOTTIME in ns; 0: is being written
	payload      *byte
}

// schema says where labels are: in goroutines.
const schema = "go_pprof_labels_v1"

// keep holds what readers may be at: outside of Go's heap, the header has no pointers that
// the garbage collector knows of.
type keep struct {
	mu       sync.Mutex
	mapping  []byte
	payloads [2][]byte // and the one before
	pinner   runtime.Pinner
}

var published keep //nolint:gochecknoglobals // there is one process context in a process

// Publish publishes resource attributes, or others than before. The error is that of the
// system, which may refuse memory of that kind.
func Publish(resource map[string]string) error {
	p := &published
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mapping == nil {
		mapping, err := mapMemory()
		if err != nil {
			return fmt.Errorf("map the process context: %w", err)
		}
		p.mapping = mapping
	}
	payload := encode(resource)
	p.pinner.Pin(&payload[0])
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return fmt.Errorf("read the clock: %w", err)
	}
	h := (*header)(unsafe.Pointer(&p.mapping[0]))
	h.publishedAt.Store(0)
	h.version, h.payloadBytes = 2, uint32(len(payload))
	// A word rather than a pointer: the mapping is no memory of Go's.
	binary.NativeEndian.PutUint64(p.mapping[unsafe.Offsetof(h.payload):], uint64(uintptr(unsafe.Pointer(&payload[0]))))
	copy(h.signature[:], "OTEL_CTX")
	h.publishedAt.Store(uint64(now.Nano()))
	// Tells readers that listen; that a kernel cannot name mappings does not matter.
	name := []byte("OTEL_CTX\x00")
	_ = unix.Prctl(unix.PR_SET_VMA, unix.PR_SET_VMA_ANON_NAME, uintptr(unsafe.Pointer(h)), uintptr(len(p.mapping)), uintptr(unsafe.Pointer(&name[0])))
	p.payloads[0], p.payloads[1] = payload, p.payloads[0]
	return nil
}

func mapMemory() ([]byte, error) {
	fd, err := unix.MemfdCreate("OTEL_CTX", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	size := os.Getpagesize()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, err
	}
	mapping, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	if err := unix.Madvise(mapping, unix.MADV_DONTFORK); err != nil {
		return nil, err
	}
	return mapping, nil
}

// encode makes a ProcessContext: field 1 is the Resource, field 2 an attribute of the process.
func encode(resource map[string]string) []byte {
	var attributes []byte
	for _, key := range slices.Sorted(maps.Keys(resource)) {
		attributes = field(attributes, 1, keyValue(key, resource[key]))
	}
	return field(field(nil, 1, attributes), 2, keyValue("threadlocal.schema_version", schema))
}

func keyValue(key, text string) []byte {
	return field(field(nil, 1, []byte(key)), 2, field(nil, 1, []byte(text)))
}

func field(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}
