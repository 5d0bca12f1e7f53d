package procfs

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const rootUser = 0

// Errors of StatMapped and OpenMapped.
var (
	// ErrNotRegular says that a path leads to something else than a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrReplaced says that a path leads to another file than the one that is mapped.
	ErrReplaced = errors.New("file was replaced")
	// ErrNoFile says that a mapping has no file behind it.
	ErrNoFile = errors.New("mapping has no file")
)

// StatMapped identifies the file behind a mapping without opening it where the
// kernel allows that (see OpenMapped).
func (f FS) StatMapped(pid int, m Mapping) (FileID, error) {
	if m.Inode == 0 {
		return FileID{}, ErrNoFile
	}
	if id, err := identify(unix.AT_FDCWD, f.mapFile(pid, m), unix.AT_STATX_DONT_SYNC); err == nil || errors.Is(err, ErrNotRegular) {
		return id, err
	}
	fd, id, err := f.locateByPath(pid, m, anybody)
	if err != nil {
		return FileID{}, err
	}
	unix.Close(fd)
	return id, nil
}

// StatExecutable identifies the executable of a process.
func (f FS) StatExecutable(pid int) (FileID, error) {
	id, err := identify(unix.AT_FDCWD, f.path(pid, "exe"), unix.AT_STATX_DONT_SYNC)
	if err != nil {
		return FileID{}, fmt.Errorf("stat exe: %w", gone(err))
	}
	return id, nil
}

// OpenMapped opens the file behind a mapping for reading. The file is taken
// from /proc/PID/map_files, which is exact, also for deleted files, but needs
// CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE; else by its path below the root of
// the process, when the inode there is the mapped one. When the process has gone, it is
// looked for below our root, whoever may read it.
//
// want is what StatMapped has said of the file. Another one is not opened: ErrReplaced.
func (f FS) OpenMapped(pid int, m Mapping, want FileID) (*os.File, error) {
	if m.Inode == 0 {
		return nil, ErrNoFile
	}
	fd, err := unix.Open(f.mapFile(pid, m), unix.O_PATH|unix.O_CLOEXEC, 0)
	var id FileID
	if err == nil {
		id, err = identifyOpen(fd)
		if err != nil {
			unix.Close(fd)
			return nil, err
		}
	} else if fd, id, err = f.locateByPath(pid, m, rootUser); err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if id != want {
		return nil, ErrReplaced
	}
	return reopen(fd, m.Path)
}

func (f FS) mapFile(pid int, m Mapping) string {
	return f.path(pid, "map_files/") + strconv.FormatUint(m.Start, 16) + "-" + strconv.FormatUint(m.Limit, 16)
}

// locateByPath returns an O_PATH descriptor of the mapped file. The kernel shows
// the path as seen from our root if it can be reached from there (a chroot), and
// else as seen from the root of the process's mount namespace (a container).
// late is the user if the process has gone.
func (f FS) locateByPath(pid int, m Mapping, late uint32) (int, FileID, error) {
	var err error
	for _, root := range []Root{ProcessRoot, OurRoot} {
		var fd int
		var id FileID
		if fd, id, err = f.locateBelow(pid, root, m, late); err == nil {
			return fd, id, nil
		}
	}
	return -1, FileID{}, err
}

// locateBelow looks below one root. Whose process has mapped the file may read or run it.
func (f FS) locateBelow(pid int, root Root, m Mapping, late uint32) (int, FileID, error) {
	fd, _, _, err := f.locate(pid, root, m.Path, walk{late: late}, mayRead|mayExecute)
	if err != nil {
		return -1, FileID{}, err
	}
	id, err := identifyOpen(fd)
	// Only the inode is compared: on btrfs and overlayfs the device numbers of
	// maps and of stat differ.
	if err == nil && id.Inode != m.Inode {
		err = ErrReplaced
	}
	if err != nil {
		unix.Close(fd)
		return -1, FileID{}, fmt.Errorf("locate %q: %w", m.Path, err)
	}
	return fd, id, nil
}

// reopen turns an O_PATH descriptor of a regular file into one for reading.
// O_NONBLOCK refuses to wait for the holder of a lease. It does not stay: Go would have its poller take the file, for
// which the kernel asks a FUSE file system (FUSE_POLL), and waits for the answer, with a lock that all of Go's
// descriptors need.
func reopen(fd int, name string) (*os.File, error) {
	real, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd),
		unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	if err := unix.SetNonblock(real, false); err != nil {
		return nil, errors.Join(&os.PathError{Op: "fcntl", Path: name, Err: err}, unix.Close(real))
	}
	return os.NewFile(uintptr(real), name), nil
}

// Identify returns what an open file is now.
func Identify(file *os.File) (FileID, error) { return identifyOpen(int(file.Fd())) }

func identifyOpen(fd int) (FileID, error) {
	id, err := identify(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return FileID{}, fmt.Errorf("stat mapped file: %w", err)
	}
	return id, nil
}

// identify returns what a file is, at a path or, without one, that is open. With AT_STATX_DONT_SYNC in flags it is what
// the kernel knows: no file server is asked, which may not answer.
func identify(fd int, path string, flags int) (FileID, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, path, flags, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID_UNIQUE, &st); err != nil {
		return FileID{}, err
	}
	id, err := regular(&unix.Stat_t{
		Mode: uint32(st.Mode), Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino, Size: int64(st.Size),
		Ctim: unix.Timespec{Sec: st.Ctime.Sec, Nsec: int64(st.Ctime.Nsec)},
	})
	if err != nil || !mayBeOfImage(&st) {
		return id, err
	}
	var fs unix.Statfs_t
	if path == "" {
		err = unix.Fstatfs(fd, &fs)
	} else {
		err = unix.Statfs(path, &fs)
	}
	if err != nil {
		return FileID{}, fmt.Errorf("stat file system: %w", err)
	}
	id.Mount = mountOfImage(fs.Type, &st)
	return id, nil
}

// mayBeOfImage reports whether a file's file system is to be asked for its kind. File servers may leave that unanswered, and
// ext4 adds up counters of all CPUs for it. An image is on a block device; an EROFS may also be in a file, but all of its
// own files are immutable (erofs_getattr, fs/erofs/inode.c). Images give a file one time for all (squashfs_new_inode,
// erofs_read_inode, get_cramfs_inode, romfs_iget), or ISO 9660 hundredths of seconds; a file that was installed has been
// given an older mtime, at a ctime in nanoseconds.
func mayBeOfImage(st *unix.Statx_t) bool {
	const hundredth = 10_000_000 // ns
	return (st.Dev_major != 0 || st.Attributes&unix.STATX_ATTR_IMMUTABLE != 0) &&
		(st.Ctime == st.Mtime || st.Ctime.Nsec%hundredth == 0)
}

// romfsMagic is ROMFS_MAGIC of linux/romfs_fs.h.
const romfsMagic = 0x7275

// mountOfImage is the FileID.Mount of a file, by the magic number of its file system.
func mountOfImage(magic int64, st *unix.Statx_t) uint64 {
	switch magic {
	case unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC, unix.CRAMFS_MAGIC, romfsMagic:
		if st.Mask&unix.STATX_MNT_ID_UNIQUE != 0 {
			return st.Mnt_id
		}
		return st.Mnt_id | recurs
	}
	return 0
}

func regular(st *unix.Stat_t) (FileID, error) {
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return FileID{}, ErrNotRegular
	}
	return FileID{Dev: st.Dev, Inode: st.Ino, CtimeNs: st.Ctim.Nano(), Size: st.Size}, nil
}
