package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// procmapQuery is struct procmap_query of include/uapi/linux/fs.h, Linux 6.11.
type procmapQuery struct {
	size, flags, addr                uint64 // in
	start, limit, vmaFlags, pageSize uint64
	offset, inode                    uint64
	major, minor                     uint32
	nameSize, buildIDSize            uint32 // in and out
	nameAddr, buildIDAddr            uint64 // in
}

const (
	// procmapRequest is PROCMAP_QUERY: _IOWR('f', 17, struct procmap_query).
	procmapRequest = 3<<30 | unsafe.Sizeof(procmapQuery{})<<16 | 'f'<<8 | 17
	// procmapNext is PROCMAP_QUERY_COVERING_OR_NEXT_VMA.
	procmapNext = 0x10
	// procmapPerms are PROCMAP_QUERY_VMA_READABLE, _WRITABLE, _EXECUTABLE and _SHARED, which are the bits of Perms.
	procmapPerms = uint64(PermRead | PermWrite | PermExec | PermShared)
)

// query yields the mappings as the kernel tells of one after the other. known is false where it cannot, which none
// before Linux 6.11 can. For the text, it makes room for a path in full, and directories can be nested so deeply that
// one line takes gigabytes of its memory, charged to who reads it (seq_path in fs/seq_file.c). Here a path has PATH_MAX
// bytes; one that has more is left out.
func (b *MappingReader) query(file *os.File, yield func(Mapping, error) bool) (known bool) {
	if b.name == nil {
		b.name = make([]byte, unix.PathMax)
	}
	fd := file.Fd()
	var prev Mapping
	for n := 0; ; n++ {
		m, err := b.next(fd, &prev)
		switch {
		case n == 0 && (errors.Is(err, unix.ENOTTY) || errors.Is(err, fs.ErrPermission)):
			return false
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESRCH):
			return true // behind the last one; or the memory is gone, which who reads has to find out
		case err != nil:
			yield(Mapping{}, fmt.Errorf("query mappings: %w", err))
			return true
		case n == MaxMappings:
			yield(Mapping{}, ErrTooManyMappings)
			return true
		}
		if !yield(m, nil) {
			return true
		}
		prev = m
	}
}

// next returns the mapping behind another one. A name takes the kernel longer than all else: one that shows the same
// file as the one before has its path; but mappings of shared memory without a file can have names of their own
// (prctl(PR_SET_VMA)).
func (b *MappingReader) next(fd uintptr, prev *Mapping) (Mapping, error) {
	if prev.Inode != 0 && prev.Path != "/dev/zero" && !strings.HasPrefix(prev.Path, "[") {
		m, err := b.ask(fd, prev, nil)
		if err != nil || m.Inode == prev.Inode && m.Dev == prev.Dev {
			m.Path = prev.Path
			return m, err
		}
	}
	m, err := b.ask(fd, prev, b.name)
	if errors.Is(err, unix.ENAMETOOLONG) {
		m, err = b.ask(fd, prev, nil)
	}
	return m, err
}

// ask returns the mapping behind another one, with its path if there is room for one.
func (b *MappingReader) ask(fd uintptr, prev *Mapping, name []byte) (Mapping, error) {
	q := procmapQuery{size: uint64(unsafe.Sizeof(procmapQuery{})), flags: procmapNext, addr: prev.Limit}
	if name != nil {
		q.nameSize, q.nameAddr = uint32(len(name)), uint64(uintptr(unsafe.Pointer(&name[0])))
	}
	if err := q.ask(fd); err != nil {
		return Mapping{}, err
	}
	m := Mapping{
		Start: q.start, Limit: q.limit, Offset: q.offset, Dev: mkdev(uint64(q.major), uint64(q.minor)), Inode: q.inode,
		Perms: Perms(q.vmaFlags & procmapPerms),
	}
	if m.Limit <= prev.Limit || m.Limit <= m.Start {
		return Mapping{}, &FormatError{Msg: "mapping ends before it starts", Val: fmt.Sprintf("%x-%x", m.Start, m.Limit)}
	}
	text, _, _ := bytes.Cut(name[:min(int(q.nameSize), len(name))], []byte{0})
	m.Path = mappedPath(text, m.Inode != 0, prev.Path)
	return m, nil
}

func (q *procmapQuery) ask(fd uintptr) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, procmapRequest, uintptr(unsafe.Pointer(q)))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}
